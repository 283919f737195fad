"""The pictures of the docs show real runs, those of tests/fixtures/real-store.

`pytest tests/browser/test_pictures.py --screenshots` writes them to docs/images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("fastapi", reason="the guide is not installed: pip install '.[guide]'")

from steptime.charts.step_profile import find_profile
from steptime.charts.usual_views import usual_queries
from steptime.core.record import Record
from steptime.index.history import CONFIGURATION
from steptime.index.matching import match_rows
from steptime.index.query import Query
from steptime.index.workspace import Workspace
from steptime.store.folder import FolderStore
from steptime.web.run_view import history_url

Opener = Callable[..., Any]
STORE = Path(__file__).parents[1] / "fixtures" / "real-store"
MOST_BYTES = 150_000
MOST_ROWS = 1000
# What the picture of the compare page may set side by side, the most telling first.
COMPARED = ("precision", "mode", "framework", "device")
CHART = "[data-spec] svg"
TABLE = "main table tbody tr"


@pytest.fixture(scope="module")
def workspace() -> Workspace:
    if not STORE.is_dir():
        pytest.skip(f"there are no real runs to show: {STORE} is missing")
    return Workspace(FolderStore(STORE))


@pytest.fixture(scope="module")
def measured(workspace: Workspace) -> list[dict[str, Any]]:
    return workspace.index.list_runs(Query(where=(("source", ("steptime",)),)), MOST_ROWS)


@pytest.fixture
def open_real(chromium: Any, serve: Any, opener: Any, workspace: Workspace) -> Iterator[Opener]:
    with serve(workspace) as address, opener(chromium, address) as open_view:
        yield open_view


def sized(width: int, height: int) -> dict[str, Any]:
    return {"viewport": {"width": width, "height": height}}


def is_small(path: Path) -> bool:
    return path.is_file() and path.stat().st_size < MOST_BYTES


def explore_url(rows: list[dict[str, Any]]) -> str:
    """The first of the usual views of this store."""
    queries = usual_queries(rows)
    return f"/?{queries[0].to_url()}" if queries else "/"


def compare_url(rows: list[dict[str, Any]]) -> str:
    """The two values of a dimension that have most configurations in common."""
    best = (0, "")
    for name in COMPARED:
        values = sorted({row[name] for row in rows if row[name]})
        for a, b in combinations(values, 2):
            sides = [[row for row in rows if row[name] == value] for value in (a, b)]
            table = match_rows("throughput", *sides)
            if len(table.pairs) > best[0]:
                queries = {"a": f"{name}={a}", "b": f"{name}={b}"}
                best = (len(table.pairs), f"/compare?{urlencode(queries)}")
    return best[1]


def longest_history_url(workspace: Workspace, rows: list[dict[str, Any]]) -> str:
    """The configuration with most runs over time."""
    configurations = Counter(tuple(row[name] for name in CONFIGURATION) for row in rows)
    ((most_common, _),) = configurations.most_common(1)
    for row in rows:
        if tuple(row[name] for name in CONFIGURATION) == most_common:
            record = workspace.find_run(row["id"])
            assert isinstance(record, Record)
            return f"/history?{history_url(record)}"
    raise AssertionError("a configuration without a row")


def profiled_run(workspace: Workspace, rows: list[dict[str, Any]]) -> str:
    """A run with a profile and a trace, on a GPU if there is one."""
    found = []
    for row in rows:
        record = workspace.find_run(row["id"])
        if not isinstance(record, Record) or not record.measurements:
            continue
        profile = find_profile(workspace, record)
        if profile and profile.trace:
            found.append((record.case.device == "cpu", row["id"]))
    if not found:
        pytest.skip("no run of the real store has a profile with a trace")
    return f"/run/{min(found)[1]}"


def test_explore_picture_shows_real_runs(
    open_real: Opener, measured: list[dict[str, Any]], picture: Any
) -> None:
    page = open_real(explore_url(measured), **sized(1200, 830))
    page.wait_for_selector(CHART)
    assert is_small(picture(page, "explore"))


def test_compare_picture_shows_real_runs(
    open_real: Opener, measured: list[dict[str, Any]], picture: Any
) -> None:
    url = compare_url(measured)
    if not url:
        pytest.skip("no two values of the real store have a configuration in common")
    page = open_real(url, **sized(1200, 830))
    page.wait_for_selector("#ratios tbody tr")
    assert is_small(picture(page, "compare"))


def test_runs_picture_shows_real_runs(
    open_real: Opener, measured: list[dict[str, Any]], picture: Any
) -> None:
    page = open_real("/runs?source=steptime", **sized(1300, 700))
    page.wait_for_selector(TABLE)
    assert is_small(picture(page, "runs"))


def test_history_picture_shows_real_runs(
    open_real: Opener, workspace: Workspace, measured: list[dict[str, Any]], picture: Any
) -> None:
    page = open_real(longest_history_url(workspace, measured), **sized(1300, 700))
    page.wait_for_selector(CHART)
    assert is_small(picture(page, "history"))


@pytest.mark.parametrize(("scheme", "name"), [("light", "run"), ("dark", "run-dark")])
def test_run_picture_shows_a_real_profile(
    open_real: Opener,
    workspace: Workspace,
    measured: list[dict[str, Any]],
    picture: Any,
    scheme: str,
    name: str,
) -> None:
    url = profiled_run(workspace, measured)
    page = open_real(url, color_scheme=scheme, **sized(1100, 1330))
    page.click("#show-timeline")
    page.wait_for_selector("#timeline canvas[data-spans]")
    page.wait_for_load_state("networkidle")
    page.evaluate("document.getElementById('profile').previousElementSibling.scrollIntoView()")
    assert is_small(picture(page, name))
