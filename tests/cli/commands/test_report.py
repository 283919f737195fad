"""`steptime report`, as a user meets it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]
TABLE = (
    ",mean_speed,Mean_Time_Per_Step,speed_uncertainty,Speed_Jitter,gpu_type,num_gpu,staged_from\n"
)


@pytest.fixture
def imported(steptime: Command, keep: Callable[[str, str], None]) -> Command:
    lines = (
        f"{n},{1000 + 100 * n},{50 / (1000 + 100 * n)},1,1,k80,{n},$LOCAL\n" for n in (1, 2, 4)
    )
    keep("2018-06-05:TF_PERFORMANCE_RESULTS.csv", TABLE + "".join(lines))
    return steptime


def test_a_page_is_written_and_what_it_tells_is_told_as_json(
    imported: Command, tmp_path: Path
) -> None:
    done = imported("report", "-o", "r.html", "--json")
    assert done.returncode == 0, done.stderr
    page, told = (tmp_path / "r.html").read_text(), json.loads(done.stdout)
    assert (
        page.startswith("<!doctype html>")
        and "<svg" in page
        and "<script" not in page
        and len(page) < 2_000_000
    )
    assert (
        told["headline"]
        == "The best throughput is 1,400 images/s: deep_mnist, training, tensorflow, k80."
    )
    (table,) = told["scaling"]
    assert [(line["count"], line["n"]) for line in table["lines"]] == [(1, 1), (2, 1), (4, 1)]
    assert table["lines"][2]["efficiency"]["value"] == pytest.approx(1400 / 1100 / 4)
    assert told["flags"][0]["what"].startswith("psc: the script builds one tower")


def test_an_empty_store_is_a_page_that_says_so(steptime: Command, tmp_path: Path) -> None:
    done = steptime("report")
    assert (
        done.returncode == 0
        and "Nothing fits the question." in (tmp_path / "report.html").read_text()
    )


def test_an_unknown_word_is_a_sentence(steptime: Command) -> None:
    done = steptime("report", "x=modell")
    assert done.returncode == 1 and done.stderr.startswith("error: ")
