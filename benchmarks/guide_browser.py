"""The guide's page in Chromium: when it appears, what it weighs, when a click redraws the chart."""

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
WEIGHT = """() => ["navigation", "resource"]
    .flatMap((type) => performance.getEntriesByType(type))
    .map((entry) => entry.encodedBodySize)"""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
]
CLICKS = 2
CLOCK_TICKS = 100  # per second, of the times in /proc


def measure_in_chromium(address: str, server: int, repeats: int) -> dict[str, str]:
    """The least of several repeats, each in a browser with an empty cache."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium")
    if not path:
        return {"Chromium": "not installed"}
    paints = []
    charts = []
    clicks = []
    cpu = []
    sizes: list[float] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        for _ in range(repeats):
            # A new context has an empty cache.
            page = browser.new_context(viewport={"width": 1200, "height": 900}).new_page()
            page.goto(address)
            page.wait_for_selector("#chart svg")
            charts.append(page.evaluate("performance.now()"))
            paints.append(page.evaluate(PAINT))
            sizes = page.evaluate(WEIGHT)
            before = cpu_seconds(server)
            for _ in range(CLICKS):
                clicks.append(page.evaluate(CLICK, "training"))
            cpu.append((cpu_seconds(server) - before) / CLICKS)
            page.context.close()
        browser.close()
    click = f"{min(clicks):,.0f} ms, with {1000 * min(cpu):,.0f} ms CPU of the server"
    return {
        "first paint": f"{min(paints):,.0f} ms",
        "chart drawn": f"{min(charts):,.0f} ms",
        "facet click to redrawn chart": click,
        "page": f"{sum(sizes) / 1000:,.0f} kB in {len(sizes)} requests",
    }


def cpu_seconds(process: int) -> float:
    # The name of the process, in parentheses, may contain spaces.
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    user_ticks, system_ticks = fields[11:13]
    return (int(user_ticks) + int(system_ticks)) / CLOCK_TICKS
