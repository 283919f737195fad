"""Two queries, or two runs, side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
Opener = Callable[..., Any]


def address(a: str, b: str, **more: str) -> str:
    return f"/compare?{urlencode({'a': a, 'b': b, **more})}"


FRAMEWORKS = address("framework=pytorch", "framework=jax")


def test_compare_page_compares_only_common_configurations(open_filled: Opener) -> None:
    page = open_filled(FRAMEWORKS)
    assert page.locator("#ratios tbody tr").count() == 2
    assert "2 matched configurations; left out: 1 only in A, 0 only in B." in page.inner_text(
        ".coverage"
    )


def test_compare_page_ratios_have_intervals(open_filled: Opener) -> None:
    page = open_filled(FRAMEWORKS)
    for row in page.locator("#ratios tbody tr").all():
        ratio, interval = (
            row.locator("td").nth(3).inner_text(),
            row.locator("td").nth(4).inner_text(),
        )
        low, high = map(float, interval.partition(" (")[0].split(" … "))
        assert low < float(ratio) < high


def test_compare_page_mean_has_an_interval(open_filled: Opener) -> None:
    headline = open_filled(FRAMEWORKS).inner_text(".headline")
    assert "95 %" in headline and "the geometric mean of 2 matched configurations" in headline


def test_compare_page_filters_by_verdict(open_filled: Opener) -> None:
    page = open_filled(FRAMEWORKS)
    verdicts = page.locator("#ratios tbody td:nth-child(6)").all_inner_texts()
    for choice in ("better", "worse", "same or inconclusive"):
        page.select_option("#show", choice)
        with page.expect_navigation():
            page.click("button:text('Compare')")
        shown = page.locator("#ratios tbody td:nth-child(6)").all_inner_texts()
        assert shown == [verdict for verdict in verdicts if verdict.endswith(choice)]
    assert len(verdicts) == 2


def test_compare_page_names_the_session_deviation(open_filled: Opener) -> None:
    text = open_filled(FRAMEWORKS).inner_text(".deviation")
    assert "at most likely" in text and "learned from 6 sessions" in text


def test_compare_page_lists_differences_with_both_values(open_filled: Opener) -> None:
    assert "jax" in open_filled(FRAMEWORKS).inner_text("#difference tr:has-text('Framework')")


def test_compare_page_counts_certified_pairs(open_filled: Opener) -> None:
    page = open_filled(FRAMEWORKS)
    assert "cover both sides of 2 of 2 pairs" in page.inner_text(".certified")
    page = open_filled(address("framework=pytorch", "framework=onnxruntime"))
    assert "cover both sides of 0 of 1 pairs" in page.inner_text(".certified")
    assert "no certificate covers onnxruntime" in page.inner_text("#ratios")


def test_compare_page_accepts_ends_of_ids(open_filled: Opener, filled: Any) -> None:
    page = open_filled(address(filled.ids["pytorch 0"], filled.ids["jax"][-12:]))
    assert page.locator("#ratios tbody tr").count() == 1


def test_compare_page_warns_of_different_work(open_filled: Opener) -> None:
    page = open_filled(address("framework=jax", "model=bert-base&plausible=no"))
    assert "no configuration in common" in page.inner_text(
        "main"
    ) or "Different work" in page.inner_text("main")


def test_compare_page_form_works_without_javascript(open_filled: Opener) -> None:
    page = open_filled("/compare", java_script_enabled=False)
    page.fill("#a", "framework=pytorch")
    page.fill("#b", "framework=jax")
    with page.expect_navigation():
        page.click("button:text('Compare')")
    assert page.locator("#ratios tbody tr").count() == 2


def test_compare_page_is_restored_by_back(open_filled: Opener) -> None:
    page = open_filled(FRAMEWORKS)
    page.locator("#ratios a").first.click()
    page.wait_for_selector("[data-spec=strip]")
    page.go_back()
    assert page.locator("#ratios tbody tr").count() == 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/compare", FRAMEWORKS])
def test_compare_page_is_accessible(
    open_filled: Opener, violations: Any, path: str, scheme: str
) -> None:
    assert violations(open_filled(path, color_scheme=scheme)) == []


def test_compare_page_fits_a_phone(open_filled: Opener) -> None:
    page = open_filled(FRAMEWORKS, viewport={"width": 380, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
