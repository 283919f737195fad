"""The list of runs: what it shows, its links, and comparing two of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
Opener = Callable[..., Any]


def test_runs_page_shows_the_newest_first(open_filled: Opener) -> None:
    page = open_filled("/runs?source=steptime")
    starts = page.locator("tbody tr td:nth-child(3)").all_inner_texts()
    assert len(starts) == 11 and starts == sorted(starts, reverse=True)


def test_runs_page_links_to_failures_and_quarantine(open_filled: Opener) -> None:
    page = open_filled("/runs")
    with page.expect_navigation():
        page.click("text=failures")
    assert "openvino" in page.inner_text("tbody")
    with page.expect_navigation():
        page.click("text=quarantine")
    assert "bert-base" in page.inner_text("tbody") and page.locator("tbody tr").count() == 1


def test_runs_page_chip_removes_its_filter(open_filled: Opener) -> None:
    page = open_filled("/runs?framework=jax")
    with page.expect_navigation():
        page.click("a.chip")
    assert page.locator("tbody tr").count() == 11


def test_runs_page_links_to_older_runs(open_page: Opener) -> None:
    page = open_page("/runs")
    first = page.inner_text("tbody tr:first-child td")
    with page.expect_navigation():
        page.click("text=Older runs")
    assert (
        page.locator("tbody tr").count() == 50
        and page.inner_text("tbody tr:first-child td") != first
    )


def test_runs_page_compares_ticked_runs_without_javascript(open_filled: Opener) -> None:
    page = open_filled("/runs?source=steptime", java_script_enabled=False)
    for place in (0, 1):
        page.locator("input[name=run]").nth(place).check()
    with page.expect_navigation():
        page.click("text=Compare ticked runs")
    assert "/compare?a=" in page.url and page.locator("#ratios tbody tr").count() == 1


def test_explore_page_can_be_used_with_keys_alone(open_filled: Opener) -> None:
    page = open_filled("/?by=framework")
    page.keyboard.press("/")
    page.keyboard.press("Space")
    page.wait_for_selector("a.chip")
    for _ in range(100):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('tbody a')"):
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**/run/*")
    expect(page.locator("h1")).to_contain_text("mnist-mlp")


def test_runs_page_finds_a_run_by_the_end_of_its_id(open_filled: Opener, filled: Any) -> None:
    page = open_filled("/runs")
    page.fill("#id", filled.ids["jax"][-12:])
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/run/{filled.ids['jax']}")


def test_runs_page_is_restored_by_back(open_filled: Opener) -> None:
    page = open_filled("/runs?framework=jax")
    before = page.inner_text("tbody")
    page.locator("tbody a").first.click()
    page.wait_for_selector("#numbers")
    page.go_back()
    assert page.inner_text("tbody") == before
    page.go_forward()
    page.wait_for_selector("#numbers")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_runs_page_is_accessible(
    open_filled: Opener, violations: Callable[[Any], list[Any]], scheme: str
) -> None:
    assert violations(open_filled("/runs?source=steptime", color_scheme=scheme)) == []


def test_runs_page_fits_a_phone(open_filled: Opener) -> None:
    page = open_filled("/runs", viewport={"width": 380, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
