"""`steptime chart`, as a user meets it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]


@pytest.fixture
def measured(steptime: Command, short_flags: list[str]) -> Command:
    done = steptime(
        "run", "--workload", "mnist-mlp", "--phase", "inference", "--set", "threads=1", *short_flags
    )
    assert done.returncode == 0, done.stderr
    return steptime


@pytest.mark.live
def test_a_stored_result_becomes_a_picture_in_each_format(
    measured: Command, tmp_path: Path
) -> None:
    for name, start in (("a.svg", b"<svg"), ("a.png", b"\x89PNG"), ("a.json", b"{")):
        done = measured("chart", "x=precision&by=framework", "-o", name)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / name).read_bytes().startswith(start)
        assert done.stdout == f"{name}: 1 points of 1 results, throughput against precision.\n"


@pytest.mark.live
def test_the_points_that_were_drawn_are_told_as_json(measured: Command) -> None:
    done = measured("chart", "x=precision", "-o", "a.json", "--json")
    (point,) = json.loads(done.stdout)["points"]
    assert point["groups"] == {"precision": "fp32"} and point["value"] > 0


def test_an_empty_store_is_a_sentence(steptime: Command) -> None:
    done = steptime("chart", "x=precision", "-o", "a.svg")
    assert (done.returncode, done.stderr) == (
        1, "error: Nothing in results has throughput and precision and fits 'x=precision'.\n"
    )  # fmt: skip


@pytest.mark.parametrize(("query", "name"), [("x=precison", "a.svg"), ("x=precision", "a.pdf")])
def test_a_wrong_word_or_format_is_a_sentence(steptime: Command, query: str, name: str) -> None:
    done = steptime("chart", query, "-o", name)
    assert (
        done.returncode == 1
        and done.stderr.startswith("error: ")
        and "Traceback" not in done.stderr
    )


def test_what_a_point_mixes_is_told(steptime: Command, tmp_path: Path) -> None:
    head = "model,infer_img_size,infer_samples_per_sec,infer_step_time,infer_batch_size,param_count"
    (tmp_path / "timm.csv").write_text(
        f"{head}\nresnet50,224,100,320,32,25\nresnet50,224,200,320,64,25\n"
    )
    steptime("import", "timm.csv")
    said = steptime("chart", "x=model", "-o", "a.json").stdout
    assert (
        "A point may mix runs that differ in replica_batch (2 values), effective_batch (2 values): name one"
        in said
    )
    assert (
        "mix" not in steptime("chart", "x=replica_batch&by=effective_batch", "-o", "a.json").stdout
    )
