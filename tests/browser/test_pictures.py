"""The docs' pictures are taken of the views that are tested: `pytest tests/browser --screenshots` takes them anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
Opener = Callable[..., Any]
MOST_BYTES = 150_000
MADE = {
    "explore": "/?x=model&by=precision&phase=training&framework=pytorch",
    "compare": "/compare?a=precision%3Dfp32&b=precision%3Dbf16",
}
STORED = {"runs": "/runs", "history": "/history?y=step_time&framework=pytorch&replica_batch=32"}


@pytest.fixture(scope="module")
def rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the one whose name only tests that it is never executed."""
    return [row for row in rows if "<" not in row["framework"]]


def sized(width: int, height: int) -> dict[str, Any]:
    return {"viewport": {"width": width, "height": height}}


def kept(path: Any) -> bool:
    return bool(path.is_file() and path.stat().st_size < MOST_BYTES)


@pytest.mark.parametrize("name", MADE)
def test_the_docs_show_made_up_runs(open_page: Opener, picture: Any, name: str) -> None:
    page = open_page(MADE[name], **sized(1200, 830))
    page.wait_for_selector("[data-spec] svg" if name == "explore" else "main table tbody tr")
    assert kept(picture(page, name))


@pytest.mark.parametrize("name", STORED)
def test_the_docs_show_stored_runs(open_filled: Opener, picture: Any, name: str) -> None:
    page = open_filled(STORED[name], **sized(1300, 700))
    page.wait_for_selector("[data-spec] svg" if name == "history" else "main table tbody tr")
    assert kept(picture(page, name))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_docs_show_the_inside_of_a_run(
    open_looked: Opener, looked: Any, picture: Any, scheme: str
) -> None:
    page = open_looked(f"/run/{looked.ids['looked']}", color_scheme=scheme, **sized(1100, 1330))
    page.click("#show-timeline")
    page.wait_for_selector("#timeline canvas[data-spans]")
    page.wait_for_selector("[data-spec=roofline-spec] svg")
    page.evaluate("document.getElementById('inside').previousElementSibling.scrollIntoView()")
    assert kept(picture(page, "run" if scheme == "light" else "run-dark"))
