"""A run of several ranks on its page: whose step it is, each rank, what the exchange takes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

testclient = pytest.importorskip(
    "fastapi.testclient", reason="the guide is not installed: pip install '.[guide]'"
)

from factories import make_rank
from steptime.core.case import Case
from steptime.index.workspace import Workspace
from steptime.store.folder import FolderStore
from steptime.web.rank_section import exchange_sentence, peak_count
from steptime.web.server import make_app

STEPS = 50
EXCHANGE: dict[str, Any] = {
    "backend": "gloo",
    "ranks": 2,
    "bytes": 490_280,
    "seconds": [0.003, 0.004, 0.005],
    "rank_seconds": [0.0031, 0.004],
    "bus_bytes_per_second": 1.2e8,
    "tiny": {"bytes": 4, "seconds": [1e-4]},
    "latency_seconds": {"value": 1e-4, "low": 9e-5, "high": 1.2e-4},
    "bandwidth_bytes_per_second": {"value": 1.3e8, "low": 1e8, "high": None},
}


@pytest.fixture
def page(tmp_path: Path, attempt_of: Callable[..., Any], write: Callable[..., str]) -> str:
    store, ranks = (
        FolderStore(tmp_path / "store"),
        (
            make_rank(0, [1_000_000] * STEPS),
            make_rank(1, [1_250_000] * STEPS),
        ),
    )
    work = {"fingerprint": "f", "unit": "images", "units_per_step": 64, "optimizer": "sgd"}
    told = {
        "ranks": ranks,
        "devices": 2,
        "exchange": "allreduce",
        "network": work,
        "findings": {"exchange": EXCHANGE},
    }
    ids = [
        write(store, attempt_of([1_250_000] * STEPS, process=number, **told)) for number in range(6)
    ]
    client = testclient.TestClient(make_app(Workspace(store)), base_url="http://127.0.0.1:8765")
    return str(client.get(f"/run/{ids[0]}", headers={"Accept": "text/html"}).text)


def cells(page: str, table: str) -> list[list[str]]:
    body = (
        page.partition(f'<table id="{table}">')[2].partition("</table>")[0].partition("<tbody>")[2]
    )
    return [
        re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in body.split("</tr>") if "<t" in row
    ]


def test_run_page_has_a_row_for_every_rank(page: str) -> None:
    first, second = cells(page, "ranks")
    assert first == ["0", "node0", "cpu", "1 ms", "1 ms … 1 ms", "0.0 %", "3.1 ms"]
    assert second == ["1", "node1", "cpu", "1.25 ms", "1.25 ms … 1.25 ms", "100.0 %", "4 ms"]


def test_headline_separates_the_aggregate_from_one_rank(page: str) -> None:
    headline = page.partition('<p class="headline">')[2].partition("</p>")[0]
    assert (
        headline.startswith("1.25 ms ±")
        and "a step lasts as long as the slowest of 2 ranks" in headline
    )
    assert headline.endswith("; aggregate 51,200 images/s, per rank 25,600 images/s")


def test_run_page_numbers_name_the_aggregate_and_the_rank(page: str) -> None:
    rates = {row[0]: row[1] for row in cells(page, "numbers") if "/s, " in row[0]}
    assert rates == {"images/s, aggregate of 2 ranks": "51,200", "images/s, per rank": "25,600"}
    assert any(row[0] == "CPU time per step, rank 0" for row in cells(page, "numbers"))


def test_exchange_sentence_separates_latency_from_bandwidth(page: str) -> None:
    told = page.partition('<p id="exchange">')[2].partition("</p>")[0]
    assert "490.3 kB of each rank by gloo take 4 ms, 120 MB/s over each link." in told
    assert (
        "One number takes 100 µs (90 µs … 120 µs): that is latency, "
        "and the rest is 130 MB/s (100 MB/s … ∞)" in told
    )


def test_exchange_sentence_has_no_bandwidth_if_all_is_latency() -> None:
    assert exchange_sentence({**EXCHANGE, "bandwidth_bytes_per_second": None}).endswith(
        "as long as all of it: it is latency."
    )


def test_exchange_sentence_of_older_runs_has_no_latency() -> None:
    older = {
        name: EXCHANGE[name] for name in ("backend", "bytes", "seconds", "bus_bytes_per_second")
    }
    assert (
        exchange_sentence(older).endswith("120 MB/s over each link.")
        and exchange_sentence(None) == ""
    )


def test_run_page_of_one_process_has_no_rank_table(
    tmp_path: Path,
    attempt_of: Callable[..., Any],
    times_of: Callable[..., Any],
    write: Callable[..., str],
) -> None:
    store = FolderStore(tmp_path / "alone")
    run = write(store, attempt_of(times_of(0)))
    text = (
        testclient.TestClient(make_app(Workspace(store)), base_url="http://127.0.0.1:8765")
        .get(f"/run/{run}")
        .text
    )
    assert 'id="ranks"' not in text and "slowest of" not in text and "images/s, all devices" in text


@pytest.mark.parametrize(
    ("settings", "peaks"),
    [
        ({"devices": 4, "nodes": 2}, 1),
        ({"devices": 4, "nodes": 2, "exchange": "allreduce"}, 2),
        ({"devices": 4, "nodes": 2, "exchange": "allreduce", "device": "cuda:0"}, 4),
    ],
)
def test_peak_count_is_one_for_each_device(settings: dict[str, Any], peaks: int) -> None:
    assert peak_count(Case(workload="lenet5", **settings)) == peaks
