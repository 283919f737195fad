"""How far campaigns are, on the page: it looks again by itself."""

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
    "campaign": "01a1-7e21", "name": "Deep MNIST", "started": "2026-01-01T00:00:00+00:00", "waiting": 2, "running": 4,
    "done": 17, "failed": 1, "processes": 24, "causes": {"timed_out": 1}, "failures": [FAILURE], "seconds_left": 40.0,
    "basis": "as fast as the last 17 results came in", "is_over": False,
    "kinds": [
        {"name": "k80", "waiting": 2, "running": 2, "done": 7, "failed": 1},
        {"name": "p100", "waiting": 0, "running": 2, "done": 10, "failed": 0},
    ],
}  # fmt: skip
SILENT = {
    "campaign": "01a1-0000", "name": "Old", "started": "2025-01-01T00:00:00+00:00", "done": 3, "processes": 9,
    "trouble": "squeue did not answer.",
}  # fmt: skip


@pytest.fixture
def told() -> list[dict[str, Any]]:
    """What the page is told; a test may change it meanwhile."""
    return [dict(RUNNING), SILENT]


@pytest.fixture
def open_campaigns(
    chromium: Any,
    serve: Any,
    opening: Any,
    told: list[dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Opener]:
    monkeypatch.setattr(campaigns, "LIVE_SECONDS", 0.2)
    with (
        serve(Workspace(FolderStore(tmp_path)), lambda: told) as address,
        opening(chromium, address) as open_view,
    ):
        yield open_view


def test_a_campaign_tells_counts_causes_and_the_time_left(open_campaigns: Opener) -> None:
    page = open_campaigns("/campaigns")
    text = page.inner_text("section:first-of-type")
    assert (
        "17 of 24 processes done; about 40 s left, as fast as the last 17 results came in." in text
    )
    rows = page.locator("section:first-of-type tbody tr").all_inner_texts()
    assert [" ".join(row.split()) for row in rows] == [
        "k80 2 2 7 1",
        "p100 0 2 10 0",
        "all 2 4 17 1",
    ]
    page.click("summary")
    assert "batch size 50: timed out. <b>Too long.</b>" in page.inner_text("details li")


def test_it_follows_without_a_reload_and_what_was_opened_stays_open(
    open_campaigns: Opener, told: list[dict[str, Any]]
) -> None:
    page = open_campaigns("/campaigns")
    page.click("summary")
    page.evaluate("window.same = true")
    told[0] |= {"done": 23, "waiting": 0, "running": 0, "is_over": True}
    page.wait_for_selector("text=23 of 24 processes done; nothing is waiting or running.")
    assert page.evaluate("window.same") and page.locator("details[open]").count() == 1


def test_a_slurm_that_is_silent_is_told_with_what_is_known(open_campaigns: Opener) -> None:
    text = open_campaigns("/campaigns").inner_text("section:last-of-type")
    assert (
        "3 of 9 processes done; the state of the rest is unknown." in text
        and "squeue did not answer." in text
    )


def test_without_javascript_it_is_all_there(open_campaigns: Opener) -> None:
    page = open_campaigns("/campaigns", java_script_enabled=False)
    assert page.locator("section").count() == 2 and page.locator("noscript a").count() == 1


def test_without_a_campaign_the_command_is_named(open_page: Opener) -> None:
    assert "steptime submit" in open_page("/campaigns").inner_text(".notice")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_barrier_is_found(open_campaigns: Opener, barriers: Any, scheme: str) -> None:
    assert barriers(open_campaigns("/campaigns", color_scheme=scheme)) == []


def test_a_program_gets_the_same(open_campaigns: Opener) -> None:
    answer = open_campaigns("/campaigns").evaluate(
        "fetch('/api/v1/campaigns').then((answer) => answer.json())"
    )
    assert answer == {"campaigns": [RUNNING, SILENT]}
