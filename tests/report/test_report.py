"""The report and the scaling tables, through the server that shows both."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

testclient = pytest.importorskip(
    "fastapi.testclient", reason="the guide is not installed: pip install '.[guide]'"
)

from steptime.core.cause import Cause
from steptime.core.record import Failure
from steptime.index.index import Point
from steptime.index.query import from_url
from steptime.index.workspace import Workspace
from steptime.report.html import STYLE, STYLE_HASH, render_report
from steptime.report.report import Chart, make_report
from steptime.store.folder import FolderStore
from steptime.web.server import make_app

WORDS = {
    "phase": "training",
    "framework": "tensorflow",
    "source": "other",
    "status": "ok",
    "plausible": "yes",
}


def row(number: int, **changes: Any) -> dict[str, Any]:
    speed = 100.0 + number
    known = {
        "id": f"{number:08}",
        "started": "2026-01-01",
        "model": "m",
        "devices": 1.0,
        "effective_batch": 64.0,
    }
    return {**known, **WORDS, "throughput": speed, "unit": "images", **changes}


@pytest.fixture(scope="module")
def guide(tmp_path_factory: pytest.TempPathFactory) -> Any:
    workspace = Workspace(FolderStore(tmp_path_factory.mktemp("store")))
    hostile = [row(n, model=f"<script>{n}</script>", server="' onload='x") for n in range(1000)]
    grown = [
        row(9000 + count, model="grown", devices=count, throughput=90.0 * count)
        for count in (1, 2, 4)
    ]
    workspace.index.add([*hostile, *grown])
    return testclient.TestClient(make_app(workspace), base_url="http://127.0.0.1:8765")


def test_report_of_a_thousand_names_is_smaller_than_two_megabytes(guide: Any) -> None:
    page = guide.get("/report.html?by=model")
    assert page.status_code == 200 and len(page.content) < 2_000_000
    assert "<script" not in page.text and re.search(
        r"\d more: <code>steptime export csv", page.text
    )


def test_report_policy_allows_only_its_own_style(guide: Any) -> None:
    page = guide.get("/report.html?model=grown")
    meta = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page.text)
    assert meta and meta[1].replace("&#39;", "'") == f"default-src 'none'; style-src {STYLE_HASH}"
    assert (
        STYLE_HASH in page.headers["Content-Security-Policy"]
        and f"<style>{STYLE}</style>" in page.text
    )


def test_report_of_devices_has_scaling_tables(guide: Any) -> None:
    (table,) = guide.get("/api/v1/scaling?x=devices&model=grown").json()["tables"]
    assert (table["kind"], [line["efficiency"]["value"] for line in table["lines"]]) == (
        "strong",
        [1.0, 1.0, 1.0],
    )
    assert all(
        "strong scaling" in guide.get(f"{path}?x=devices&model=grown").text
        for path in ("/", "/report.html")
    )
    assert guide.get("/api/v1/scaling?model=grown").json()["tables"] == []


def test_report_page_refuses_a_wrong_query(guide: Any) -> None:
    assert guide.get("/report.html?x=modell", headers={"Accept": "text/html"}).status_code == 422


def test_report_lists_a_process_that_failed_beside_others(
    tmp_path: Path, attempt_of: Any, times_of: Any, write: Any
) -> None:
    good, store = attempt_of(times_of(0, steps=40)), FolderStore(tmp_path)
    lost = Failure(cause=Cause.CRASHED, reason="The worker was killed by SIGSEGV.")
    first = write(store, good)
    write(store, replace(good, process=1, measurement=None, failure=lost))
    report = make_report(Workspace(store))
    (told,) = report.failures
    assert told.what.startswith(
        "pytorch: crashed, The worker was killed"
    ) and told.example.startswith(first[-8:])
    assert (
        "Nothing failed." not in render_report(report, store.path) and report.counts["failed"] == 0
    )


def test_report_explains_a_quarantined_result(
    tmp_path: Path, attempt_of: Any, times_of: Any, write: Any
) -> None:
    store = FolderStore(tmp_path)
    write(store, attempt_of(times_of(0, steps=40), checks={"forced_share": 0.9}))
    (told,) = make_report(Workspace(store)).quarantine
    assert told.what.startswith("pytorch: ") and "ok" not in told.what


@pytest.mark.parametrize(("loss", "charts"), [(0.0, 0), (1.5, 1)])
def test_report_omits_an_accuracy_chart_of_zeros(tmp_path: Path, loss: float, charts: int) -> None:
    workspace = Workspace(FolderStore(tmp_path))
    workspace.index.add(
        [row(1, precision="fp32", task_loss=0.0), row(2, precision="int8", task_loss=loss)]
    )
    drawn = [chart for chart in make_report(workspace).charts if chart.query.x == "task_loss"]
    assert len(drawn) == charts
    assert len(make_report(workspace, from_url("x=task_loss")).charts) == 1


@pytest.mark.parametrize(
    ("low", "caption"),
    [(1.0, "Thin lines are 95 % intervals."), (None, "No point has an interval")],
)
def test_chart_caption_speaks_of_intervals_only_if_there_are_any(
    low: float | None, caption: str
) -> None:
    point = Point({"model": "m"}, 2.0, low, low and 3.0, 1, "id")
    chart = Chart(from_url(""), "title", "<svg/>", ["model"], [point], {}, "images")
    assert chart.caption.startswith(caption)
