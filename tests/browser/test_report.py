"""The report, opened from the disk and through the guide."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

axe = pytest.importorskip(
    "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
)

from steptime.index.workspace import Workspace
from steptime.report.html import render_report
from steptime.report.report import make_report

Opener = Callable[..., Any]
PHONE = {"viewport": {"width": 390, "height": 800}}


@pytest.fixture(scope="module")
def file(filled: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    workspace = Workspace(filled.store)
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render_report(make_report(workspace), filled.store.path))
    return path


@pytest.fixture
def opened(chromium: Any, file: Path) -> Any:
    """From the disk, without a network: no request and no message may occur."""
    contexts, troubles = [], []

    def open_file(**settings: Any) -> Any:
        contexts.append(chromium.new_context(offline=True, java_script_enabled=True, **settings))
        page = contexts[-1].new_page()
        page.on("console", lambda said: troubles.append(said.text))
        page.on(
            "request",
            lambda sent: troubles.append(sent.url) if not sent.url.startswith("file://") else None,
        )
        page.goto(file.as_uri())
        return page

    yield open_file
    for context in contexts:
        context.close()
    assert troubles == []


def test_report_is_one_small_file(opened: Opener, file: Path) -> None:
    page = opened()
    assert file.stat().st_size < 2_000_000 and "<script" not in file.read_text()
    assert page.locator("figure svg").count() >= 1 and page.locator("main > h1").count() == 1


def test_report_shows_failures_and_quarantine_with_reasons(opened: Opener) -> None:
    text = opened().inner_text("main")
    assert "OpenVINO does not train" in text and "19.6× on 8 GPUs" in text
    assert "certified" in text and "refused" in text and "abc123" in text


def test_report_escapes_foreign_text(opened: Opener) -> None:
    page = opened()
    assert page.locator("main script").count() == 0


@pytest.mark.parametrize(
    "settings", [{}, {"color_scheme": "dark"}, PHONE], ids=["light", "dark", "phone"]
)
def test_report_is_accessible(opened: Opener, settings: dict[str, Any]) -> None:
    page = opened(**settings)
    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_report_chart_has_light_text_in_the_dark(opened: Opener) -> None:
    page = opened(color_scheme="dark")
    colour = page.eval_on_selector(".chart text", "text => getComputedStyle(text).fill")
    assert min(int(part) for part in re.findall(r"\d+", colour)) > 200


def test_explore_page_links_to_the_report_of_its_view(open_filled: Opener) -> None:
    page = open_filled("/?by=framework&phase=inference&replica_batch=1")
    page.get_by_role("link", name="Report").click()
    page.wait_for_selector("figure svg")
    assert page.locator("figure").count() == 1
    assert "steptime report 'by=framework&phase=inference&replica_batch=1'" in page.inner_text(
        "main"
    )
