"""The explore page, as people use it."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

from steptime.charts.draw import draw as as_picture  # noqa: E402

Opener = Callable[..., Any]
CHART = "#chart svg"


def points(page: Any) -> int:
    return int(re.search(r"(\d+) points", page.inner_text(".chips"))[1])  # type: ignore[index]


def runs(page: Any) -> int:
    return int(re.search(r"([\d,]+) runs", page.inner_text(".chips"))[1].replace(",", ""))  # type: ignore[index]


def test_the_chart_is_drawn(open_page: Opener) -> None:
    page = open_page("/?by=framework")
    page.wait_for_selector(CHART)
    assert page.locator(f"{CHART} .mark-symbol path").count() >= points(page)


def test_a_facet_narrows_and_its_count_is_what_it_leaves(
    open_page: Opener, rows: list[dict[str, Any]]
) -> None:
    page = open_page("/")
    page.get_by_label("training").check()
    page.wait_for_url("**phase=training*")
    page.wait_for_selector("a.chip")
    assert runs(page) == sum(row["phase"] == "training" for row in rows)


def test_the_other_values_of_a_chosen_facet_keep_their_counts(
    open_page: Opener, rows: list[dict[str, Any]]
) -> None:
    page = open_page("/?phase=training")
    label = page.locator(
        "label", has=page.locator("input[name=phase][value=inference]")
    ).inner_text()
    assert label.split()[-1] == str(sum(row["phase"] == "inference" for row in rows))


def test_focus_stays_on_the_ticked_box(open_page: Opener) -> None:
    page = open_page("/")
    page.locator("input[name=phase][value=training]").focus()
    page.keyboard.press("Space")
    page.wait_for_url("**phase=training*")
    expect(page.locator("input[name=phase][value=training]")).to_be_focused()


def test_back_and_forward_restore_the_view(open_page: Opener) -> None:
    page = open_page("/")
    before = runs(page)
    page.get_by_label("training").check()
    page.wait_for_selector("a.chip")
    page.go_back()
    page.locator("a.chip").wait_for(state="detached")
    assert runs(page) == before
    page.go_forward()
    page.wait_for_selector("a.chip")


def test_a_copied_address_shows_the_same_to_others(open_page: Opener) -> None:
    page = open_page(
        "/?by=framework&split=phase&precision=int8&precision=bf16&log=y&agg=median&err=iqr"
    )
    other = open_page(page.url.removeprefix(page.evaluate("location.origin")))
    assert page.inner_text("table") == other.inner_text("table")


def test_every_control_changes_the_address(open_page: Opener) -> None:
    page = open_page("/")
    for name, value in (
        ("y", "step_time"),
        ("x", "precision"),
        ("split", "phase"),
        ("agg", "mean"),
        ("log", "y"),
    ):
        page.select_option(f"select[name={name}]", value)
        page.wait_for_url(f"**{name}={value}*")


def test_the_notice_names_what_a_point_mixes_and_fix_and_split_end_it(open_page: Opener) -> None:
    page = open_page("/?framework=jax&precision=fp32&phase=training")
    assert "Replica batch (3 values" in page.inner_text(".notice")
    page.click(".notice a:text('fix')")
    assert "Replica batch" not in (
        page.inner_text(".notice") if page.locator(".notice").count() else ""
    )
    page = open_page("/?framework=jax&precision=fp32&phase=training")
    page.click(".notice a:text('split')")
    assert "split=replica_batch" in page.url


def test_the_table_is_the_charts_data(open_page: Opener) -> None:
    page = open_page("/?by=framework")
    drawn = json.loads(
        page.inner_text("#spec") or page.evaluate("document.getElementById('spec').textContent")
    )
    assert page.locator("tbody tr").count() == len(drawn["data"]["values"]) == points(page)


def test_a_filter_can_be_removed_by_its_chip(open_page: Opener) -> None:
    page = open_page("/?phase=training")
    page.click("a.chip")
    assert "phase" not in page.url


def taken(page: Any, kind: str) -> Any:
    link = page.get_attribute(f".links a:text-is('{kind}')", "href")
    answer = page.request.get(page.evaluate("location.origin") + link)
    assert answer.ok
    return answer


def test_pictures_hold_exactly_the_pages_data(open_page: Opener) -> None:
    page = open_page("/?x=precision&by=framework&phase=training")
    spec = json.loads(page.evaluate("document.getElementById('spec').textContent"))
    assert taken(page, "JSON").json() == spec
    for kind in ("SVG", "PNG"):
        assert taken(page, kind).body() == as_picture(f".{kind.lower()}", spec)


@pytest.mark.parametrize("x", ["precision", "step_time"])
def test_the_csv_is_the_pages_table(open_page: Opener, x: str) -> None:
    page = open_page(f"/?x={x}&by=framework&phase=training")
    head, *lines = csv.reader(io.StringIO(taken(page, "CSV").text()))
    assert {x, "framework", "throughput", "low", "high", "n", "run"} == set(head)
    assert [line[-1][-8:] for line in lines] == page.locator("tbody td a").all_inner_texts()


def test_without_javascript_the_form_asks_and_the_table_answers(open_page: Opener) -> None:
    page = open_page("/", java_script_enabled=False)
    page.get_by_label("training").check()
    page.click("text=Show")
    assert "phase=training" in page.url and page.locator("tbody tr").count() > 0


def test_text_of_others_is_shown_and_never_executed(open_page: Opener) -> None:
    page = open_page("/?by=framework")
    assert (
        page.get_by_role("checkbox", name="<b>bold</b>").count() == 1
        and page.locator("main b").count() == 0
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 380])
def test_no_barrier_is_found(open_page: Opener, scheme: str, width: int) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-core is not installed"
    )
    page = open_page(
        "/?by=framework&phase=training",
        color_scheme=scheme,
        viewport={"width": width, "height": 800},
    )
    page.wait_for_selector(CHART)
    assert axe.Axe().run(page).response["violations"] == []


def test_a_phone_needs_no_sideways_scrolling(open_page: Opener) -> None:
    page = open_page("/?by=framework", viewport={"width": 380, "height": 800})
    page.wait_for_selector(CHART)
    assert page.evaluate("document.documentElement.scrollWidth") <= 380


def test_a_wrong_word_is_answered_by_422(open_page: Opener, address: str) -> None:
    answer = open_page("/").request.get(f"{address}/?by=framewrk")
    assert answer.status == 422 and "Did you mean 'framework'?" in answer.json()["detail"]


def test_a_slash_leads_to_the_filters(open_page: Opener) -> None:
    page = open_page("/")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.closest('.facets') !== null")


def test_t_turns_the_theme_and_it_stays_turned(open_page: Opener) -> None:
    page = open_page("/", color_scheme="light")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.keyboard.press("t")
    dark = page.evaluate(background)
    page.reload()
    assert dark != light and page.evaluate(background) == dark
    page.click("#theme")
    assert page.evaluate(background) == light


def test_t_in_a_field_is_a_letter(open_page: Opener) -> None:
    page = open_page("/")
    page.focus("#rel")
    page.keyboard.press("t")
    assert (
        page.input_value("#rel") == "t"
        and page.evaluate("document.documentElement.dataset.theme") is None
    )


def test_a_named_series_is_added_and_removed(open_page: Opener) -> None:
    page = open_page("/?s=fast|precision%3Dint8")
    page.fill("#series", "slow|precision=fp32")
    page.keyboard.press("Tab")
    page.wait_for_selector("a.series >> nth=1")
    assert (
        page.locator("tbody td:text-is('fast')").count()
        and page.locator("tbody td:text-is('slow')").count()
    )
    page.click("a.series:has-text('fast')")
    assert page.locator("a.series").all_inner_texts() == ["series slow ×"]


def test_two_points_are_ticked_and_compared(open_filled: Opener) -> None:
    page = open_filled("/?by=framework&replica_batch=32")
    for place in (0, 1):
        page.locator("tbody input[name=run]").nth(place).check()
    assert "run=" not in page.url
    page.click("text=Compare ticked runs")
    page.wait_for_selector("#ratios")


def test_people_are_told_the_known_words(chromium: Any, address: str) -> None:
    page = chromium.new_page()
    answer = page.goto(f"{address}/?by=framewrk")
    assert answer.status == 422 and "Did you mean 'framework'?" in page.inner_text(".notice")
    assert "replica_batch" in page.inner_text("main") and page.locator("nav").count() == 1
    page.close()


def test_a_number_in_the_address_ticks_its_box(
    open_page: Opener, rows: list[dict[str, Any]]
) -> None:
    page = open_page("/?replica_batch=64")
    boxes = page.locator("input[name=replica_batch][type=checkbox]")
    assert sorted(box.get_attribute("value") for box in boxes.all()) == ["1", "64", "8"]
    assert page.locator("input[name=replica_batch]:checked").get_attribute("value") == "64"
    assert runs(page) == sum(row["replica_batch"] == 64 for row in rows)


def test_a_click_keeps_every_word_of_the_question(open_page: Opener) -> None:
    words = "by=framework&by=mode&by=precision&since=2025&until=2027-01-01&!model=none&agg=mean&rel=mode:eager"
    page = open_page(f"/?{words}")
    page.locator("input[name=phase][value=training]").check()
    page.wait_for_url("**phase=training*")
    for word in (
        "by=precision",
        "since=2025",
        "until=2027-01-01",
        "%21model=none",
        "agg=mean",
        "rel=mode%3Aeager",
    ):
        assert word in page.url


def test_what_was_opened_stays_open(open_page: Opener) -> None:
    page = open_page("/")
    page.click("details[data-facet=replica_batch] summary")
    page.locator("input[name=phase][value=training]").check()
    page.wait_for_selector("a.chip")
    assert page.locator("details[data-facet=replica_batch][open]").count() == 1


def test_a_scaling_without_its_batch_waits_for_it(chromium: Any, address: str) -> None:
    page = chromium.new_page()
    page.goto(address)
    page.select_option("#scaling", "weak")
    page.wait_for_selector(".answer .notice[role=alert]")
    assert "scaling and batch go together" in page.inner_text(".answer")
    page.fill("#batch", "64")
    page.keyboard.press("Tab")
    page.wait_for_url("**scaling=weak*batch=64*")
    page.wait_for_selector(CHART)
    page.close()


def test_the_newest_question_counts_whatever_comes_back_first(open_page: Opener) -> None:
    page = open_page("/")
    page.evaluate("""() => {
        const plain = window.fetch;
        let late = true;
        window.fetch = (...words) => {
            const wait = late ? 400 : 0;
            late = false;
            return new Promise((done) => setTimeout(done, wait)).then(() => plain(...words));
        };
    }""")
    page.locator("input[name=phase][value=training]").check()
    page.locator("input[name=precision][value=int8]").check()
    page.wait_for_url("**precision=int8*")
    page.wait_for_timeout(600)
    assert "precision=int8" in page.url and page.locator("a.chip").count() == 2


def test_a_range_of_numbers_can_be_typed(open_page: Opener, rows: list[dict[str, Any]]) -> None:
    page = open_page("/")
    page.click("details[data-facet=replica_batch] summary")
    page.fill("details[data-facet=replica_batch] input:not([type=checkbox])", "8..")
    page.keyboard.press("Tab")
    page.wait_for_selector("a.chip:has-text('replica batch 8.. ×')")
    assert runs(page) == sum(row["replica_batch"] >= 8 for row in rows)


def test_the_link_can_be_copied(open_page: Opener) -> None:
    page = open_page("/?by=framework", permissions=["clipboard-read", "clipboard-write"])
    page.click("#copy")
    page.wait_for_selector("#copy:text('Copied')")
    assert page.evaluate("navigator.clipboard.readText()") == page.url


def test_in_the_dark_a_chart_has_light_letters_on_the_pages_own_ground(open_page: Opener) -> None:
    page = open_page("/?by=framework", color_scheme="dark")
    page.wait_for_selector(CHART)
    colour = page.eval_on_selector(f"{CHART} text", "text => getComputedStyle(text).fill")
    assert min(int(part) for part in re.findall(r"\d+", colour)) > 200
    assert (
        page.eval_on_selector(".chart", "chart => getComputedStyle(chart).backgroundColor")
        == "rgba(0, 0, 0, 0)"
    )
