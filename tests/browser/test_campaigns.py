"""The page of campaigns, which updates itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("fastapi", reason="the guide is not installed: pip install '.[guide]'")

from steptime.index.workspace import Workspace
from steptime.store.folder import FolderStore
from steptime.web.pages import campaigns

Opener = Callable[..., Any]
FAILURE = {"case": "batch size 50", "cause": "timed_out", "reason": "<b>Too long.</b>"}
RUNNING: dict[str, Any] = {
    "campaign": "01a1-7e21",
    "name": "Deep MNIST",
    "started": "2026-01-01T00:00:00+00:00",
    "waiting": 2,
    "running": 4,
    "done": 17,
    "failed": 1,
    "processes": 24,
    "causes": {"timed_out": 1},
    "failures": [FAILURE],
    "seconds_left": 40.0,
    "basis": "as fast as the last 17 results came in",
    "is_over": False,
    "kinds": [
        {"name": "k80", "waiting": 2, "running": 2, "done": 7, "failed": 1},
        {"name": "p100", "waiting": 0, "running": 2, "done": 10, "failed": 0},
    ],
}
SILENT = {
    "campaign": "01a1-0000",
    "name": "Old",
    "started": "2025-01-01T00:00:00+00:00",
    "done": 3,
    "processes": 9,
    "trouble": "squeue did not answer.",
}


@pytest.fixture
def told() -> list[dict[str, Any]]:
    """What the page is told; a test may change it meanwhile."""
    return [dict(RUNNING), SILENT]


@pytest.fixture
def open_campaigns(
    chromium: Any,
    serve: Any,
    opener: Any,
    told: list[dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Opener]:
    monkeypatch.setattr(campaigns, "LIVE_SECONDS", 0.2)
    with (
        serve(Workspace(FolderStore(tmp_path)), lambda: told) as address,
        opener(chromium, address) as open_view,
    ):
        yield open_view


def test_campaigns_page_shows_counts_causes_and_time_left(open_campaigns: Opener) -> None:
    page = open_campaigns("/campaigns")
    text = page.inner_text("section:first-of-type")
    assert (
        "17 of 24 processes done; about 40 s left, as fast as the last 17 results came in." in text
    )
    # One call reads the whole table: the page replaces its rows five times a second.
    rows = page.inner_text("section:first-of-type tbody").splitlines()
    assert [" ".join(row.split()) for row in rows if row.strip()] == [
        "k80 2 2 7 1",
        "p100 0 2 10 0",
        "all 2 4 17 1",
    ]
    page.click("summary")
    assert "batch size 50: timed out. <b>Too long.</b>" in page.inner_text("details li")


def test_campaigns_page_updates_itself_and_keeps_details_open(
    open_campaigns: Opener, told: list[dict[str, Any]]
) -> None:
    page = open_campaigns("/campaigns")
    page.click("summary")
    page.evaluate("window.same = true")
    told[0] |= {"done": 23, "waiting": 0, "running": 0, "is_over": True}
    page.wait_for_selector("text=23 of 24 processes done; nothing is waiting or running.")
    assert page.evaluate("window.same") and page.locator("details[open]").count() == 1


def test_campaigns_page_reports_a_silent_slurm(open_campaigns: Opener) -> None:
    text = open_campaigns("/campaigns").inner_text("section:last-of-type")
    assert (
        "3 of 9 processes done; the state of the rest is unknown." in text
        and "squeue did not answer." in text
    )


def test_campaigns_page_works_without_javascript(open_campaigns: Opener) -> None:
    page = open_campaigns("/campaigns", java_script_enabled=False)
    assert page.locator("section").count() == 2 and page.locator("noscript a").count() == 1


def test_campaigns_page_without_campaigns_names_the_command(open_page: Opener) -> None:
    assert "steptime submit" in open_page("/campaigns").inner_text(".notice")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_campaigns_page_is_accessible(open_campaigns: Opener, violations: Any, scheme: str) -> None:
    assert violations(open_campaigns("/campaigns", color_scheme=scheme)) == []


def test_campaigns_api_returns_the_same(open_campaigns: Opener) -> None:
    answer = open_campaigns("/campaigns").evaluate(
        "fetch('/api/v1/campaigns').then((answer) => answer.json())"
    )
    assert answer == {"campaigns": [RUNNING, SILENT]}
