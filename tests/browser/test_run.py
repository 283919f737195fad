"""One run's page: its numbers with their doubts, its steps, how to repeat it; failures; other tools' results."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
Opener = Callable[..., Any]


def drawn(page: Any, name: str) -> dict[str, Any]:
    return dict(json.loads(page.evaluate(f"document.getElementById('{name}').textContent")))


def test_the_headline_has_the_interval_and_the_grade(open_filled: Opener, filled: Any) -> None:
    page = open_filled(f"/run/{filled.ids['pytorch 0']}")
    assert "ms ±" in page.inner_text(".headline") and "grade" in page.inner_text(".headline")
    assert "…" in page.inner_text("#numbers tr:has-text('typical step')")


def test_doubts_are_told_with_their_evidence(open_filled: Opener, filled: Any) -> None:
    page = open_filled(f"/run/{filled.ids['pytorch 0']}")
    assert "too few samples" in page.locator(".flag").all_inner_texts()[-1]


def test_the_strip_shades_the_warm_up(open_filled: Opener, filled: Any) -> None:
    page = open_filled(f"/run/{filled.ids['pytorch 0']}")
    page.wait_for_selector("[data-spec=strip] svg")
    assert page.locator("[data-spec=strip] .mark-rect path").count() == 6  # one for each process
    parts = {
        value["part"] for value in drawn(page, "strip")["data"]["values"] if value["sample"] < 20
    }
    assert parts == {"warm-up"}


def test_the_histogram_holds_the_measured_steps_alone(open_filled: Opener, filled: Any) -> None:
    page = open_filled(f"/run/{filled.ids['pytorch 0']}")
    page.wait_for_selector("[data-spec=histogram] svg")
    assert len(drawn(page, "histogram")["data"]["values"]) == 6 * 180


def test_the_command_that_repeats_it_can_be_copied(open_filled: Opener, filled: Any) -> None:
    page = open_filled(
        f"/run/{filled.ids['jax small']}", permissions=["clipboard-read", "clipboard-write"]
    )
    page.click("button:text('Copy')")
    page.wait_for_selector("button:text('Copied')")
    command = page.evaluate("navigator.clipboard.readText()")
    assert command.startswith(
        "steptime run --workload mnist-mlp --phase inference --batch-size 1 --set framework=jax"
    )


def test_the_share_of_the_machines_peak_is_told(open_filled: Opener, filled: Any) -> None:
    page = open_filled(f"/run/{filled.ids['pytorch 0']}")
    assert "of the measured fp32 peak" in page.inner_text("#numbers")


def test_a_certificate_is_told_and_a_missing_one_names_its_command(
    open_filled: Opener, filled: Any
) -> None:
    assert "Certified" in open_filled(f"/run/{filled.ids['jax']}").inner_text("main")
    page = open_filled(f"/run/{filled.ids['onnxruntime']}")
    assert "steptime certify mnist-mlp --framework onnxruntime" in page.inner_text("#missing")


def test_a_failure_tells_its_cause_and_its_output(open_filled: Opener, filled: Any) -> None:
    page = open_filled(f"/run/{filled.ids['failed']}")
    assert page.inner_text(".headline") == "unsupported: OpenVINO does not train."
    assert page.inner_text("pre") == "<script>alert(1)</script>"


def test_an_impossible_result_of_others_is_shown_with_the_reason(
    open_filled: Opener, filled: Any
) -> None:
    page = open_filled(f"/run/{filled.ids['foreign']}")
    assert "In quarantine: 19.6× on 8 GPUs. It is shown but never ranked." in page.inner_text(
        ".notice"
    )
    assert "lambda.csv" in page.inner_text("main") and "1,000,000" in page.inner_text("#numbers")


def test_its_past_is_one_click_away(open_filled: Opener, filled: Any) -> None:
    page = open_filled(f"/run/{filled.ids['pytorch 0']}")
    page.click("text=The same configuration over time")
    assert page.locator("tbody tr").count() == 6


def test_without_javascript_the_numbers_are_there(open_filled: Opener, filled: Any) -> None:
    page = open_filled(f"/run/{filled.ids['pytorch 0']}", java_script_enabled=False)
    assert "typical step" in page.inner_text("#numbers")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["pytorch 0", "failed", "foreign"])
def test_no_barrier_is_found(
    open_filled: Opener, filled: Any, barriers: Any, name: str, scheme: str
) -> None:
    page = open_filled(f"/run/{filled.ids[name]}", color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert barriers(page) == []


def test_an_unknown_run_is_told_in_the_pages_frame(chromium: Any, filled_address: str) -> None:
    page = chromium.new_page()
    answer = page.goto(f"{filled_address}/run/nobody")
    assert (
        answer.status == 404
        and "No run 'nobody'" in page.inner_text("main")
        and page.locator("nav").count() == 1
    )
    page.close()
