"""Machines with their peaks, and certificates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
Opener = Callable[..., Any]


def test_machines_page_shows_measured_peaks(open_filled: Opener) -> None:
    page = open_filled("/machines")
    assert page.inner_text("h2") == "A processor" and "4 GFLOP/s" in page.inner_text(
        "tr:has-text('fp32')"
    )


def test_machines_page_without_machines_names_the_command(open_page: Opener) -> None:
    assert "steptime machine" in open_page("/machines").inner_text(".notice")


def test_certificates_page_shows_verdicts_and_errors(open_filled: Opener) -> None:
    page = open_filled("/certificates")
    assert page.locator("tbody tr:has-text('pass')").count() == 2
    assert "outputs (0.5 of its bound)" in page.inner_text("tbody tr:first-child")


def test_certificates_page_without_certificates_names_the_command(open_page: Opener) -> None:
    assert "steptime certify" in open_page("/certificates").inner_text(".notice")


def test_machines_and_certificates_work_without_javascript(open_filled: Opener) -> None:
    for path in ("/machines", "/certificates"):
        assert open_filled(path, java_script_enabled=False).locator("table").count() >= 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/machines", "/certificates"])
def test_machines_and_certificates_are_accessible(
    open_filled: Opener, violations: Any, path: str, scheme: str
) -> None:
    assert violations(open_filled(path, color_scheme=scheme)) == []
