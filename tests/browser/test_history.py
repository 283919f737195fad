"""A configuration over time, with the run at which its level changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
Opener = Callable[..., Any]
SLOWER = "/history?framework=pytorch&replica_batch=32&y=step_time"


def test_the_change_is_marked_in_the_table_at_its_run(open_filled: Opener, filled: Any) -> None:
    page = open_filled(SLOWER)
    changed = page.locator("tbody tr:has-text('worse')")
    assert changed.count() == 1 and filled.ids["pytorch 3"][-8:] in changed.inner_text()
    assert page.inner_text(".changes").startswith("1 change of level")


def test_the_change_is_marked_in_the_chart(open_filled: Opener) -> None:
    page = open_filled(SLOWER)
    page.wait_for_selector("[data-spec=spec-history] svg")
    assert page.locator("svg line[stroke-dasharray='4,3']").count() == 1


def test_several_histories_in_one_view_are_told(open_filled: Opener) -> None:
    page = open_filled("/history?source=steptime")
    assert "several configurations, which differ in framework, replica batch" in page.inner_text(
        ".notice"
    )


def test_a_run_is_one_click_away_and_back(open_filled: Opener) -> None:
    page = open_filled(SLOWER)
    page.locator("tbody a").first.click()
    page.wait_for_selector("#numbers")
    page.go_back()
    assert page.locator("tbody tr").count() == 6


def test_without_javascript_the_table_is_there(open_filled: Opener) -> None:
    assert open_filled(SLOWER, java_script_enabled=False).locator("tbody tr").count() == 6


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_barrier_is_found(open_filled: Opener, barriers: Any, scheme: str) -> None:
    page = open_filled(SLOWER, color_scheme=scheme)
    page.wait_for_selector("[data-spec=spec-history] svg")
    assert barriers(page) == []
