"""`steptime chart`: files in each format, the points as JSON, mixed points."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import Command, Process
from steptime.core.case import Case

pytest.importorskip("duckdb", reason="the index is not installed: pip install '.[guide]'")
HEAD = "model,infer_img_size,infer_samples_per_sec,infer_step_time,infer_batch_size,param_count"
TIMM = f"{HEAD}\nresnet50,224,100,320,32,25\nresnet50,224,200,320,64,25\n"


@pytest.fixture
def stored(steptime: Command, store_session: Callable[..., list[str]]) -> Command:
    store_session([Case(workload="mnist-mlp", phase="inference")])
    return steptime


@pytest.mark.parametrize(
    ("name", "start"),
    [("a.svg", b"<svg"), ("a.png", b"\x89PNG"), ("a.pdf", b"%PDF"), ("a.json", b"{")],
)
def test_chart_writes_each_format(name: str, start: bytes, stored: Command, tmp_path: Path) -> None:
    done = stored("chart", "x=precision&by=framework", "-o", name)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / name).read_bytes().startswith(start)
    assert done.stdout == f"{name}: 1 point from 1 result, throughput against precision.\n"


@pytest.mark.usefixtures("stored")
def test_chart_to_stdout_prints_nothing_else_there(steptime_process: Process) -> None:
    with steptime_process("chart", "x=precision&by=framework", "-o", "-") as process:
        printed, told = process.communicate()
    assert process.returncode == 0 and printed.startswith("<svg") and printed.endswith("</svg>")
    assert told.startswith("-: 1 point from 1 result")


def test_chart_to_stdout_beside_json_is_refused(stored: Command) -> None:
    done = stored("chart", "x=precision&by=framework", "-o", "-", "--json")
    assert done.returncode == 1 and "-o - and --json would both print" in done.stderr


def test_chart_json_has_the_points(stored: Command) -> None:
    done = stored("chart", "x=precision", "-o", "a.json", "--json")
    (point,) = json.loads(done.stdout)["points"]
    assert point["groups"] == {"precision": "fp32"} and point["value"] > 0


def test_chart_names_what_a_point_mixes(
    steptime: Command, keep: Callable[[str, str], None]
) -> None:
    keep("timm.csv", TIMM)
    mixed = steptime("chart", "x=model", "-o", "a.json").stdout
    assert "differ in replica_batch (2 values), effective_batch (2 values).\n" in mixed
    split = steptime("chart", "x=replica_batch&by=effective_batch", "-o", "a.json").stdout
    assert "mix" not in split
