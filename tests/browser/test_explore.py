"""The explore page in a browser."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

from steptime.charts.draw import draw as as_picture

Opener = Callable[..., Any]
CHART = "#chart svg"


def points(page: Any) -> int:
    match = re.search(r"(\d+) points", page.inner_text(".chips"))
    assert match
    return int(match[1])


def runs(page: Any) -> int:
    match = re.search(r"([\d,]+) runs", page.inner_text(".chips"))
    assert match
    return int(match[1].replace(",", ""))


def test_explore_page_draws_the_chart(open_page: Opener) -> None:
    page = open_page("/?by=framework")
    page.wait_for_selector(CHART)
    assert page.locator(f"{CHART} .mark-symbol path").count() >= points(page)


def test_explore_page_facet_leaves_as_many_runs_as_it_counts(
    open_page: Opener, rows: list[dict[str, Any]]
) -> None:
    page = open_page("/")
    page.get_by_label("training").check()
    page.wait_for_url("**phase=training*")
    page.wait_for_selector("a.chip")
    assert runs(page) == sum(row["phase"] == "training" for row in rows)


def test_explore_page_chosen_facet_keeps_other_counts(
    open_page: Opener, rows: list[dict[str, Any]]
) -> None:
    page = open_page("/?phase=training")
    label = page.locator(
        "label", has=page.locator("input[name=phase][value=inference]")
    ).inner_text()
    assert label.split()[-1] == str(sum(row["phase"] == "inference" for row in rows))


def test_explore_page_keeps_focus_on_the_ticked_box(open_page: Opener) -> None:
    page = open_page("/")
    page.locator("input[name=phase][value=training]").focus()
    page.keyboard.press("Space")
    page.wait_for_url("**phase=training*")
    expect(page.locator("input[name=phase][value=training]")).to_be_focused()


def test_explore_page_is_restored_by_back_and_forward(open_page: Opener) -> None:
    page = open_page("/")
    before = runs(page)
    page.get_by_label("training").check()
    page.wait_for_selector("a.chip")
    page.go_back()
    page.locator("a.chip").wait_for(state="detached")
    assert runs(page) == before
    page.go_forward()
    page.wait_for_selector("a.chip")


def test_explore_page_url_shows_the_same_view(open_page: Opener) -> None:
    page = open_page(
        "/?by=framework&split=phase&precision=int8&precision=bf16&log=y&agg=median&err=iqr"
    )
    other = open_page(page.url.removeprefix(page.evaluate("location.origin")))
    assert page.inner_text("table") == other.inner_text("table")


def test_explore_page_controls_change_the_url(open_page: Opener) -> None:
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


def test_explore_page_notice_offers_fix_and_split(open_page: Opener) -> None:
    page = open_page("/?framework=jax&precision=fp32&phase=training")
    assert "Replica batch (3 values" in page.inner_text(".notice")
    page.click(".notice a:text('fix')")
    page.locator(".notice", has_text="Replica batch").wait_for(state="detached")
    page = open_page("/?framework=jax&precision=fp32&phase=training")
    page.click(".notice a:text('split')")
    page.wait_for_url("**split=replica_batch*")


def test_explore_page_table_has_the_charts_data(open_page: Opener) -> None:
    page = open_page("/?by=framework")
    drawn = json.loads(
        page.inner_text("#spec") or page.evaluate("document.getElementById('spec').textContent")
    )
    assert page.locator("tbody tr").count() == len(drawn["data"]["values"]) == points(page)


def test_explore_page_chip_removes_its_filter(open_page: Opener) -> None:
    page = open_page("/?phase=training")
    page.click("a.chip")
    page.wait_for_url(lambda url: "phase" not in url)


def taken(page: Any, kind: str) -> Any:
    link = page.get_attribute(f".links a:text-is('{kind}')", "href")
    answer = page.request.get(page.evaluate("location.origin") + link)
    assert answer.ok
    return answer


def test_chart_files_have_the_pages_data(open_page: Opener) -> None:
    page = open_page("/?x=precision&by=framework&phase=training")
    spec = json.loads(page.evaluate("document.getElementById('spec').textContent"))
    assert taken(page, "JSON").json() == spec
    for kind in ("SVG", "PNG"):
        assert taken(page, kind).body() == as_picture(f".{kind.lower()}", spec)


@pytest.mark.parametrize("x", ["precision", "step_time"])
def test_chart_csv_has_the_pages_table(open_page: Opener, x: str) -> None:
    page = open_page(f"/?x={x}&by=framework&phase=training")
    head, *lines = csv.reader(io.StringIO(taken(page, "CSV").text()))
    assert {x, "framework", "throughput", "low", "high", "n", "run"} == set(head)
    assert [line[-1][-8:] for line in lines] == page.locator("tbody td a").all_inner_texts()


def test_explore_page_works_without_javascript(open_page: Opener) -> None:
    page = open_page("/", java_script_enabled=False)
    page.get_by_label("training").check()
    with page.expect_navigation():
        page.click("text=Show")
    assert "phase=training" in page.url and page.locator("tbody tr").count() > 0


def test_explore_page_escapes_foreign_text(open_page: Opener) -> None:
    page = open_page("/?by=framework")
    assert (
        page.get_by_role("checkbox", name="<b>bold</b>").count() == 1
        and page.locator("main b").count() == 0
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 380])
def test_explore_page_is_accessible(open_page: Opener, scheme: str, width: int) -> None:
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


def test_explore_page_fits_a_phone(open_page: Opener) -> None:
    page = open_page("/?by=framework", viewport={"width": 380, "height": 800})
    page.wait_for_selector(CHART)
    assert page.evaluate("document.documentElement.scrollWidth") <= 380


def test_explore_page_answers_422_to_an_unknown_name(open_page: Opener, address: str) -> None:
    answer = open_page("/").request.get(f"{address}/?by=framewrk")
    assert answer.status == 422 and "Did you mean 'framework'?" in answer.json()["detail"]


def test_slash_key_focuses_the_filters(open_page: Opener) -> None:
    page = open_page("/")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.closest('.facets') !== null")


def test_t_key_toggles_the_theme_and_it_stays(open_page: Opener) -> None:
    page = open_page("/", color_scheme="light")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.keyboard.press("t")
    dark = page.evaluate(background)
    page.reload()
    assert dark != light and page.evaluate(background) == dark
    page.click("#theme")
    assert page.evaluate(background) == light


def test_t_key_in_a_field_is_a_letter(open_page: Opener) -> None:
    page = open_page("/")
    page.focus("#rel")
    page.keyboard.press("t")
    assert (
        page.input_value("#rel") == "t"
        and page.evaluate("document.documentElement.dataset.theme") is None
    )


def test_explore_page_adds_and_removes_a_series(open_page: Opener) -> None:
    page = open_page("/?s=fast|precision%3Dint8")
    page.fill("#series", "slow|precision=fp32")
    page.keyboard.press("Tab")
    page.wait_for_selector("a.series >> nth=1")
    assert (
        page.locator("tbody td:text-is('fast')").count()
        and page.locator("tbody td:text-is('slow')").count()
    )
    page.click("a.series:has-text('fast')")
    page.locator("a.series:has-text('fast')").wait_for(state="detached")
    assert page.locator("a.series").all_inner_texts() == ["series slow ×"]


def test_explore_page_compares_two_ticked_points(open_filled: Opener) -> None:
    page = open_filled("/?by=framework&replica_batch=32")
    for place in (0, 1):
        page.locator("tbody input[name=run]").nth(place).check()
    assert "run=" not in page.url
    page.click("text=Compare ticked runs")
    page.wait_for_selector("#ratios")


def test_problem_page_lists_known_names(chromium: Any, address: str) -> None:
    page = chromium.new_page()
    answer = page.goto(f"{address}/?by=framewrk")
    assert answer.status == 422 and "Did you mean 'framework'?" in page.inner_text(".notice")
    assert "replica_batch" in page.inner_text("main") and page.locator("nav").count() == 1
    page.close()


def test_explore_page_ticks_a_number_of_the_url(
    open_page: Opener, rows: list[dict[str, Any]]
) -> None:
    page = open_page("/?replica_batch=64")
    boxes = page.locator("input[name=replica_batch][type=checkbox]")
    assert sorted(box.get_attribute("value") for box in boxes.all()) == ["1", "64", "8"]
    assert page.locator("input[name=replica_batch]:checked").get_attribute("value") == "64"
    assert runs(page) == sum(row["replica_batch"] == 64 for row in rows)


def test_explore_page_click_keeps_all_parameters(open_page: Opener) -> None:
    groups = "by=framework&by=mode&by=precision"
    filters = "since=2025&until=2027-01-01&!model=none"
    page = open_page(f"/?{groups}&{filters}&agg=mean&rel=mode:eager")
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


def test_explore_page_keeps_facets_open(open_page: Opener) -> None:
    page = open_page("/")
    page.click("details[data-facet=replica_batch] summary")
    page.locator("input[name=phase][value=training]").check()
    page.wait_for_selector("a.chip")
    assert page.locator("details[data-facet=replica_batch][open]").count() == 1


def test_explore_page_waits_for_the_batch_of_scaling(chromium: Any, address: str) -> None:
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


def test_explore_page_shows_the_newest_query(open_page: Opener) -> None:
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


def test_explore_page_accepts_a_typed_range(open_page: Opener, rows: list[dict[str, Any]]) -> None:
    page = open_page("/")
    page.click("details[data-facet=replica_batch] summary")
    page.fill("details[data-facet=replica_batch] input:not([type=checkbox])", "8..")
    page.keyboard.press("Tab")
    page.wait_for_selector("a.chip:has-text('replica batch 8.. ×')")
    assert runs(page) == sum(row["replica_batch"] >= 8 for row in rows)


def test_explore_page_copies_its_link(open_page: Opener) -> None:
    page = open_page("/?by=framework", permissions=["clipboard-read", "clipboard-write"])
    page.click("#copy")
    page.wait_for_selector("#copy:text('Copied')")
    assert page.evaluate("navigator.clipboard.readText()") == page.url


def test_explore_page_chart_has_light_text_in_the_dark(open_page: Opener) -> None:
    page = open_page("/?by=framework", color_scheme="dark")
    page.wait_for_selector(CHART)
    colour = page.eval_on_selector(f"{CHART} text", "text => getComputedStyle(text).fill")
    assert min(int(part) for part in re.findall(r"\d+", colour)) > 200
    assert (
        page.eval_on_selector(".chart", "chart => getComputedStyle(chart).backgroundColor")
        == "rgba(0, 0, 0, 0)"
    )
