"""timm's tables."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from steptime.formats import Reading

Read = Callable[..., Reading]
SPEED = """model,infer_img_size,infer_samples_per_sec,infer_step_time,infer_batch_size,param_count,\
infer_gmacs
resnet50,224,100.0,320.0,32,25.56,4.11
broken,224,,,32,1,1
"""
ACCURACY = """model,img_size,top1,top1_err,top5,top5_err,param_count,crop_pct,interpolation
eva.clip,336,89.466,10.534,98.820,1.180,"1,013.01",1.000,bicubic
"""


def test_configuration_is_in_the_file_name(read: Read) -> None:
    run = read("benchmark-infer-amp-nhwc-pt240-cu124-rtx4090-dynamo.csv", SPEED).runs[0]
    told = {
        name: run.dimensions[name]
        for name in ("precision", "layout", "device", "framework_version", "mode")
    }
    assert told == {
        "precision": "amp",
        "layout": "nhwc",
        "device": "rtx4090",
        "framework_version": "2.4.0",
        "mode": "compiled",
    }
    assert (
        read("benchmark-infer-amp-nchw-pt113-cu117-rtx3090.csv", SPEED)
        .runs[0]
        .dimensions["framework_version"]
        == "1.13"
    )


def test_row_is_a_run_with_its_flops(read: Read) -> None:
    found = read("benchmark-infer-amp-nchw-pt240-cu124-rtx3090.csv", SPEED)
    run = found.runs[0]
    told = {
        "throughput": 100.0,
        "throughput_per_device": 100.0,
        "step_time": 0.32,
        "flops": 8.22e11,
    }
    assert run.metrics == pytest.approx(told)
    assert (
        run.dimensions["effective_batch"] == 32
        and run.dimensions["unit"] == "images"
        and run.location == "line 2"
    )
    assert [(skipped.location, skipped.reason) for skipped in found.skipped] == [
        ("line 3", "no speed: ''")
    ]


def test_accuracy_is_a_share(read: Read) -> None:
    run = read("results-imagenet.csv", ACCURACY).runs[0]
    assert run.metrics == {"accuracy": 0.89466} and run.dimensions["data"] == "imagenet"
    assert run.more["parameters"] == 1013.01e6


def test_pretraining_table_has_no_results(read: Read) -> None:
    found = read("model_metadata-in1k.csv", "model,pretrain\nresnet50,in1k\n")
    assert not found.runs and "no result" in found.skipped[0].reason
