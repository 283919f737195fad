"""The page of a run: its numbers and flags, its steps, how to repeat it; failures; imports."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
Opener = Callable[..., Any]


def drawn(page: Any, name: str) -> dict[str, Any]:
    return dict(json.loads(page.evaluate(f"document.getElementById('{name}').textContent")))


def test_run_page_headline_has_interval_and_grade(open_filled: Opener, filled: Any) -> None:
    page = open_filled(f"/run/{filled.ids['pytorch 0']}")
    assert "ms ±" in page.inner_text(".headline") and "grade" in page.inner_text(".headline")
    assert "…" in page.inner_text("#numbers tr:has-text('typical step')")


def test_run_page_shows_flags_with_their_evidence(open_filled: Opener, filled: Any) -> None:
    page = open_filled(f"/run/{filled.ids['pytorch 0']}")
    assert "too few samples" in " ".join(page.locator(".flag").all_inner_texts())


def test_run_page_strip_shades_the_warm_up(open_filled: Opener, filled: Any) -> None:
    page = open_filled(f"/run/{filled.ids['pytorch 0']}")
    page.wait_for_selector("[data-spec=strip] svg")
    assert page.locator("[data-spec=strip] .mark-rect path").count() == 6  # one for each process
    parts = {
        value["part"] for value in drawn(page, "strip")["data"]["values"] if value["sample"] < 20
    }
    assert parts == {"warm-up"}


def test_run_page_histogram_has_only_measured_steps(open_filled: Opener, filled: Any) -> None:
    page = open_filled(f"/run/{filled.ids['pytorch 0']}")
    page.wait_for_selector("[data-spec=histogram] svg")
    assert len(drawn(page, "histogram")["data"]["values"]) == 6 * 180


def test_run_page_copies_the_rerun_command(open_filled: Opener, filled: Any) -> None:
    page = open_filled(
        f"/run/{filled.ids['jax small']}", permissions=["clipboard-read", "clipboard-write"]
    )
    page.click("button:text('Copy')")
    page.wait_for_selector("button:text('Copied')")
    command = page.evaluate("navigator.clipboard.readText()")
    assert command.startswith(
        "steptime run --workload mnist-mlp --phase inference --batch-size 1 --set framework=jax"
    )


def test_run_page_shows_the_share_of_the_measured_peak(open_filled: Opener, filled: Any) -> None:
    page = open_filled(f"/run/{filled.ids['pytorch 0']}")
    assert "of the measured fp32 peak" in page.inner_text("#numbers")


def test_run_page_shows_the_certificate_or_its_command(open_filled: Opener, filled: Any) -> None:
    assert "Certified" in open_filled(f"/run/{filled.ids['jax']}").inner_text("main")
    page = open_filled(f"/run/{filled.ids['onnxruntime']}")
    assert "steptime certify mnist-mlp --framework onnxruntime" in page.inner_text("#missing")


def test_run_page_of_a_failure_shows_cause_and_output(open_filled: Opener, filled: Any) -> None:
    page = open_filled(f"/run/{filled.ids['failed']}")
    assert page.inner_text(".headline") == "unsupported: OpenVINO does not train."
    assert page.inner_text("pre") == "<script>alert(1)</script>"


def test_run_page_of_a_quarantined_import_shows_the_reason(
    open_filled: Opener, filled: Any
) -> None:
    page = open_filled(f"/run/{filled.ids['foreign']}")
    assert "In quarantine: 19.6× on 8 GPUs. It is shown but never ranked." in page.inner_text(
        ".notice"
    )
    assert "lambda.csv" in page.inner_text("main") and "1,000,000" in page.inner_text("#numbers")


def test_run_page_links_to_its_history(open_filled: Opener, filled: Any) -> None:
    page = open_filled(f"/run/{filled.ids['pytorch 0']}")
    with page.expect_navigation():
        page.click("text=The same configuration over time")
    assert page.locator("tbody tr").count() == 6


def test_run_page_works_without_javascript(open_filled: Opener, filled: Any) -> None:
    page = open_filled(f"/run/{filled.ids['pytorch 0']}", java_script_enabled=False)
    assert "typical step" in page.inner_text("#numbers")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["pytorch 0", "failed", "foreign"])
def test_run_page_is_accessible(
    open_filled: Opener, filled: Any, violations: Any, name: str, scheme: str
) -> None:
    page = open_filled(f"/run/{filled.ids[name]}", color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert violations(page) == []


def test_run_page_of_an_unknown_run_is_a_404_page(chromium: Any, filled_address: str) -> None:
    page = chromium.new_page()
    answer = page.goto(f"{filled_address}/run/nobody")
    assert (
        answer.status == 404
        and "No run 'nobody'" in page.inner_text("main")
        and page.locator("nav").count() == 1
    )
    page.close()
