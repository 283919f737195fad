"""DAWNBench entries."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from steptime.formats import Reading

Read = Callable[..., Reading]

ENTRY = (
    '{"version": "v1.0", "author": "A", "authorEmail": "a@b", "framework": '
    '"PyTorch 0.4.1", "model": "ResNet", "hardware": "8 V100", '
    '"costPerHour": 36.0, "timestamp": "2018-09-06"%s}'
)


def test_time_and_cost_are_those_of_the_first_epoch_at_the_target(read: Read) -> None:
    epochs = (
        "\ufeffhours\tepoch\ttop1Accuracy\ttop5Accuracy\r\n0.5\t1\t60\t92.9\r\n"
        "1.0\t2\t70\t93.1\r\n1.5\t3\t71\t94\r\n"
    )
    run = read("ImageNet/train/a.json", ENTRY % "", {"a.tsv": epochs}).runs[0]
    assert run.metrics == pytest.approx(
        {"time_to_accuracy": 3600.0, "cost": 36.0, "accuracy": 0.94}
    )
    assert run.dimensions["framework"] == "pytorch" and run.more["epochs"] == 3


def test_run_below_its_target_failed(read: Read) -> None:
    run = read(
        "CIFAR10/train/a.json", ENTRY % "", {"a.tsv": "epoch\thours\ttop1Accuracy\n1\t0.1\t93.9\n"}
    ).runs[0]
    assert run.failure == "top1Accuracy never reached 94%" and "time_to_accuracy" not in run.metrics


def test_latency_is_in_milliseconds(read: Read) -> None:
    run = read(
        "SQuAD/inference/a.json", ENTRY % ', "latency": 638.1, "cost": null, "f1Score": 0.753'
    ).runs[0]
    assert run.metrics == pytest.approx({"step_time": 0.6381, "accuracy": 0.753})


def test_epochs_beside_an_entry_have_no_rows(read: Read) -> None:
    assert not read(
        "CIFAR10/train/a.tsv", "epoch\thours\ttop1Accuracy\n1\t0.1\t95\n", {"a.json": ENTRY % ""}
    ).runs
    assert (
        read("CIFAR10/train/a.tsv", "epoch\thours\ttop1Accuracy\n1\t0.1\t95\n")
        .runs[0]
        .metrics["time_to_accuracy"]
        == 360
    )
