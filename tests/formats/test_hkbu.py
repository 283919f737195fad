"""HKBU DLBench's result line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from steptime.formats import Reading

Read = Callable[..., Reading]


def test_line_is_a_run_and_the_name_its_configuration(read: Read) -> None:
    name = "mxnet-cnn-resnet-GTX980-devId0-c1-b128-Mon-host.log"
    run = read(name, 'starting\n-t 120.5 -a 0.25 -I "1:0.5:1.2,2:0.75:0.8"\n').runs[0]
    assert run.metrics == pytest.approx(
        {"step_time": 0.25, "throughput": 512.0, "accuracy": 0.75, "loss": 0.8}
    )
    assert (
        run.dimensions["framework"] == "mxnet"
        and run.dimensions["device"] == "GTX980"
        and run.location == "line 2"
    )


def test_line_without_a_time_is_a_failure(read: Read) -> None:
    assert read("a.log", "-t 0 -a 0 -I \n").runs[0].failure == "no time of a mini-batch"
