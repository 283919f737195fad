"""`steptime report`: one page, and its content as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import Command

pytest.importorskip("duckdb", reason="the index is not installed: pip install '.[guide]'")
HEAD = ",mean_speed,Mean_Time_Per_Step,speed_uncertainty,Speed_Jitter,gpu_type,num_gpu,staged_from"


@pytest.fixture
def imported(steptime: Command, keep: Callable[[str, str], None]) -> Command:
    lines = [HEAD]
    for devices in (1, 2, 4):
        speed = 1000 + 100 * devices
        lines.append(f"{devices},{speed},{50 / speed},1,1,k80,{devices},$LOCAL")
    keep("2018-06-05:TF_PERFORMANCE_RESULTS.csv", "\n".join(lines) + "\n")
    return steptime


def test_report_writes_a_page_and_prints_its_content(imported: Command, tmp_path: Path) -> None:
    done = imported("report", "-o", "r.html", "--json")
    assert done.returncode == 0, done.stderr
    page, document = (tmp_path / "r.html").read_text(), json.loads(done.stdout)
    assert page.startswith("<!doctype html>") and len(page) < 2_000_000
    assert "<svg" in page and "<script" not in page
    assert "1,400 images/s" in document["headline"]
    (table,) = document["scaling"]
    assert [(line["count"], line["n"]) for line in table["lines"]] == [(1, 1), (2, 1), (4, 1)]
    assert table["lines"][2]["efficiency"]["value"] == pytest.approx(1400 / 1100 / 4)
    assert document["flags"][0]["what"].startswith("psc: the script builds one tower")


def test_report_of_an_empty_store_says_so(steptime: Command, tmp_path: Path) -> None:
    done = steptime("report")
    assert done.returncode == 1 and "No results match this query in results." in done.stderr
    assert not (tmp_path / "report.html").exists()
