"""The list of runs: what is shown, where it leads, and comparing two of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
Opener = Callable[..., Any]


def test_the_newest_run_stands_first(open_filled: Opener) -> None:
    page = open_filled("/runs?source=steptime")
    starts = page.locator("tbody tr td:nth-child(3)").all_inner_texts()
    assert len(starts) == 11 and starts == sorted(starts, reverse=True)


def test_failures_and_quarantine_are_one_click_away(open_filled: Opener) -> None:
    page = open_filled("/runs")
    page.click("text=failures")
    assert "openvino" in page.inner_text("tbody")
    page.click("text=quarantine")
    assert "bert-base" in page.inner_text("tbody") and page.locator("tbody tr").count() == 1


def test_a_filter_can_be_removed(open_filled: Opener) -> None:
    page = open_filled("/runs?framework=jax")
    page.click("a.chip")
    assert page.locator("tbody tr").count() == 11


def test_older_runs_are_on_the_next_page(open_page: Opener) -> None:
    page = open_page("/runs")
    first = page.inner_text("tbody tr:first-child td")
    page.click("text=Older runs")
    assert (
        page.locator("tbody tr").count() == 50
        and page.inner_text("tbody tr:first-child td") != first
    )


def test_two_ticked_runs_are_compared_without_javascript(open_filled: Opener) -> None:
    page = open_filled("/runs?source=steptime", java_script_enabled=False)
    for place in (0, 1):
        page.locator("input[name=run]").nth(place).check()
    page.click("text=Compare ticked runs")
    assert "/compare?a=" in page.url and page.locator("#ratios tbody tr").count() == 1


def test_keys_alone_lead_from_a_filter_to_a_run(open_filled: Opener) -> None:
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


def test_the_end_of_an_id_leads_to_its_run(open_filled: Opener, filled: Any) -> None:
    page = open_filled("/runs")
    page.fill("#id", filled.ids["jax"][-12:])
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/run/{filled.ids['jax']}")


def test_back_leads_from_a_run_to_the_list(open_filled: Opener) -> None:
    page = open_filled("/runs?framework=jax")
    before = page.inner_text("tbody")
    page.locator("tbody a").first.click()
    page.wait_for_selector("#numbers")
    page.go_back()
    assert page.inner_text("tbody") == before
    page.go_forward()
    page.wait_for_selector("#numbers")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_barrier_is_found(
    open_filled: Opener, barriers: Callable[[Any], list[Any]], scheme: str
) -> None:
    assert barriers(open_filled("/runs?source=steptime", color_scheme=scheme)) == []


def test_a_phone_needs_no_sideways_scrolling(open_filled: Opener) -> None:
    page = open_filled("/runs", viewport={"width": 380, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
