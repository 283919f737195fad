"""The guide's page in Chromium: how soon it is there, what it weighs, and how soon a click redraws the chart."""

from __future__ import annotations

import shutil
from pathlib import Path

CLICK = """(value) => new Promise((done) => {
    const began = performance.now(), old = document.querySelector("#chart svg");
    const look = () => {
        const now = document.querySelector("#chart svg");
        if (now && now !== old) done(performance.now() - began); else requestAnimationFrame(look);
    };
    document.querySelector(`input[name=phase][value=${value}]`).click();
    look();
})"""
WEIGHT = """() => [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
    .map((one) => one.encodedBodySize)"""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN"
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
]


def in_chromium(address: str, server: int, repeats: int) -> dict[str, str]:
    """The least of several, each in a browser that has nothing in its cache."""
    from playwright.sync_api import sync_playwright

    if not (path := shutil.which("chromium")):
        return {"Chromium": "not installed"}
    paints, drawn, clicks, cpu, weights = [], [], [], [], list[float]()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=QUIET)
        for _ in range(repeats):
            page = browser.new_context(viewport={"width": 1200, "height": 900}).new_page()
            page.goto(address)
            page.wait_for_selector("#chart svg")
            drawn.append(page.evaluate("performance.now()"))
            paints.append(page.evaluate(PAINT))
            weights = page.evaluate(WEIGHT)
            before = cpu_seconds(server)
            clicks += [page.evaluate(CLICK, "training") for _ in range(2)]
            cpu.append((cpu_seconds(server) - before) / 2)
            page.context.close()
        browser.close()
    return {
        "first paint": f"{min(paints):,.0f} ms",
        "chart drawn": f"{min(drawn):,.0f} ms",
        "facet click to redrawn chart": f"{min(clicks):,.0f} ms, with {1000 * min(cpu):,.0f} ms CPU of the server",
        "page": f"{sum(weights) / 1000:,.0f} kB in {len(weights)} requests",
    }


def cpu_seconds(process: int) -> float:
    return (
        sum(map(int, Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]))
        / 100
    )
