"""What holds for every page: accessible, and no sideways scrolling, on a dark phone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("fastapi", reason="the guide is not installed: pip install '.[guide]'")

from steptime.web.server import load_pages

Opener = Callable[..., Any]
PHONE = {"viewport": {"width": 380, "height": 800}}
PAGES = [
    "/?by=framework&split=replica_batch&mark=bar",
    "/runs",
    "/run/FOREIGN",
    "/run/FAILED",
    "/run/pytorch 0",
    "/compare?a=framework=pytorch&b=framework=jax",
    "/history?framework=pytorch",
    "/reference",
]
# The pages of the navigation without parameters, also those that somebody adds.
PAGES += [page.PATH for page in load_pages() if page.ORDER is not None and page.PATH not in PAGES]


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_accessible_on_a_dark_phone(
    open_filled: Opener, filled: Any, violations: Any, path: str
) -> None:
    start, _, name = path.rpartition("/")
    path = f"/run/{filled.ids[name.lower()]}" if start == "/run" else path
    page = open_filled(path, color_scheme="dark", **PHONE)
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["viewport"]["width"]
    assert violations(page) == [] and page.locator("h1").count() == 1


def test_profile_fits_a_phone(open_profiled: Opener, profiled: Any) -> None:
    page = open_profiled(f"/run/{profiled.ids['profiled']}", **PHONE)
    page.click("#show-timeline")
    page.wait_for_selector("#timeline canvas[data-spans]")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["viewport"]["width"]


@pytest.mark.parametrize("path", ["/nowhere", "/?by=framewrk", "/run/nobody"])
def test_problem_page_is_accessible(
    chromium: Any, filled_address: str, violations: Any, path: str
) -> None:
    page = chromium.new_page(**PHONE)
    page.goto(filled_address + path)
    assert page.locator(".notice").count() == 1 and violations(page) == []
    page.close()


def test_footer_leads_to_the_api_reference(open_filled: Opener) -> None:
    page = open_filled("/")
    page.click("footer a:text('API reference')")
    assert "throughput_per_device" in page.inner_text(
        "#metrics"
    ) and "interconnect" in page.inner_text("#dimensions")
    assert "POST /api/v1/runs" in page.inner_text("#routes") and "median" in page.inner_text(
        "#parameters"
    )
