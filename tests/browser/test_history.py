"""A configuration over time, with the run at which its level changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
Opener = Callable[..., Any]
SLOWER = "/history?framework=pytorch&replica_batch=32&y=step_time"


def test_history_page_table_marks_the_change(open_filled: Opener, filled: Any) -> None:
    page = open_filled(SLOWER)
    changed = page.locator("tbody tr:has-text('worse')")
    assert changed.count() == 1 and filled.ids["pytorch 3"][-8:] in changed.inner_text()
    assert page.inner_text(".changes").startswith("1 change of level")


def test_history_page_chart_marks_the_change(open_filled: Opener) -> None:
    page = open_filled(SLOWER)
    page.wait_for_selector("[data-spec=spec-history] svg")
    assert page.locator("svg line[stroke-dasharray='4,3']").count() == 1


def test_history_page_warns_of_several_configurations(open_filled: Opener) -> None:
    page = open_filled("/history?source=steptime")
    assert "several configurations, which differ in framework, replica batch" in page.inner_text(
        ".notice"
    )


def test_history_page_links_to_its_runs(open_filled: Opener) -> None:
    page = open_filled(SLOWER)
    page.locator("tbody a").first.click()
    page.wait_for_selector("#numbers")
    page.go_back()
    assert page.locator("tbody tr").count() == 6


def test_history_page_works_without_javascript(open_filled: Opener) -> None:
    assert open_filled(SLOWER, java_script_enabled=False).locator("tbody tr").count() == 6


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_history_page_is_accessible(open_filled: Opener, violations: Any, scheme: str) -> None:
    page = open_filled(SLOWER, color_scheme=scheme)
    page.wait_for_selector("[data-spec=spec-history] svg")
    assert violations(page) == []
