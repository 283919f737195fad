"""Series out of records: what is exposed, hidden and oversubscribed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from factories import make_attempt
from steptime.analysis.scaling.draws import holds_zero, interval_ends
from steptime.analysis.scaling.series import (
    Series,
    find_series,
    oversubscription,
    plan_cases,
    select_cases,
    share_threads,
)
from steptime.core.case import Case
from steptime.core.errors import SteptimeError
from steptime.core.record import Record
from steptime.store.journal import uuid7

Make = Callable[..., Any]
CPUS = {"cpus": [0, 1]}


@pytest.fixture
def record() -> Make:
    """Processes 1 % apart. `alone` is the exchange alone, `tiny` that of one number."""

    def make(
        devices: int,
        milliseconds: float,
        *,
        exchange: str = "allreduce",
        alone: float = 0,
        **case: Any,
    ) -> Record:
        findings: dict[str, Any] = {}
        if alone:
            findings["exchange"] = {"bytes": 400, "seconds": [alone / 1e3] * 3}
        tiny = case.pop("tiny", 0)
        if tiny:
            findings["exchange"]["tiny"] = {"bytes": 4, "seconds": [tiny / 1e3] * 3}
        costs = case.pop("pause_cost", None)
        if costs:
            findings["pause_cost"] = costs
        settings = {
            "devices": devices,
            "exchange": exchange if devices > 1 else "none",
            "batch_size": 64,
            "environment": CPUS,
            **case,
        }
        attempts = [
            make_attempt(
                np.full(50, milliseconds * 1e6 * (1 + wobble)),
                id=uuid7(),
                findings=findings,
                **settings,
            )
            for wobble in (-0.01, -0.005, 0.0, 0.0, 0.005, 0.01)
        ]
        return Record(attempts=tuple(attempts))

    return make


def only(records: Sequence[Record]) -> Series:
    (series,) = find_series(records)
    return series


def test_find_series_weak_holds_the_batch_per_device(record: Make) -> None:
    series = only([record(1, 100), record(2, 125), record(4, 200)])
    assert (series.kind, [point.devices for point in series.points]) == ("weak", [1, 2, 4])
    assert [series.speed_up(p.devices, p.step)[0] for p in series.points] == pytest.approx(
        [1, 1.6, 2]
    )
    assert [series.efficiency(p.devices, p.step)[0] for p in series.points] == pytest.approx(
        [1, 0.8, 0.5]
    )


def test_find_series_strong_holds_the_total_batch(record: Make) -> None:
    series = only([record(1, 100), record(2, 60, batch_size=32)])
    assert series.kind == "strong"
    assert series.speed_up(2, series.points[1].step)[0] == pytest.approx(100 / 60)


def test_point_exposed_is_the_difference_to_no_exchange(record: Make) -> None:
    point = only(
        [record(1, 100), record(2, 130, alone=40), record(2, 105, exchange="independent")]
    ).points[1]
    assert point.exposed is not None and point.overlapped is not None
    assert (point.exposed[0], point.overlapped[0]) == pytest.approx((0.025, 0.015), rel=1e-3)
    assert interval_ends(point.exposed)[0] < 0.025 < interval_ends(point.exposed)[
        1
    ] and not holds_zero(point.exposed)


def test_point_exposed_is_not_clamped(record: Make) -> None:
    point = only(
        [record(1, 100), record(2, 90, alone=5), record(2, 105, exchange="independent")]
    ).points[1]
    assert point.exposed is not None and point.exposed[0] == pytest.approx(-0.015, rel=1e-3)


def test_point_exposed_is_none_without_independent_ranks(record: Make) -> None:
    point = only([record(1, 100), record(2, 130, alone=40)]).points[1]
    assert (point.exposed, point.overlapped) == (None, None)
    assert point.bandwidth is not None and point.bandwidth[0] == pytest.approx(400 / 0.04)


def test_point_latency_and_link_come_from_a_tiny_exchange(
    record: Make,
) -> None:
    point = only([record(1, 100), record(2, 130, alone=40, tiny=8)]).points[1]
    assert point.latency is not None and point.latency[0] == pytest.approx(0.008)
    assert point.link is not None and point.link[0] == pytest.approx(400 / 0.032)
    assert only([record(1, 100), record(2, 130, alone=40)]).points[1].latency is None


def test_point_link_is_none_if_bytes_take_no_longer(record: Make) -> None:
    assert only([record(1, 100), record(2, 130, alone=8, tiny=8)]).points[1].link is None


def test_point_wait_excludes_the_pause_cost(record: Make) -> None:
    told = {"pauses_seconds": [0.0, 0.05], "turns": [[0.1, 0.11]] * 3}
    bare = record(2, 105, exchange="independent", pause_cost=told)
    point = only([record(1, 100), record(2, 130, alone=40), bare]).points[1]
    assert point.exposed is not None and point.wait is not None
    assert (point.exposed - point.wait)[0] == pytest.approx(
        0.1 * 0.105 * point.wait[0] / 0.05, rel=0.01
    )


def test_find_series_shares_draws_between_weak_and_strong(record: Make) -> None:
    records = [record(1, 100), record(2, 130, alone=40), record(2, 70, alone=42, batch_size=32)]
    weak, strong = find_series(records)
    assert (weak.kind, strong.kind) == ("weak", "strong")
    assert weak.first.step is strong.first.step
    assert weak.points[1].exchange is strong.points[1].exchange
    assert weak.points[1].exchange is not None and weak.points[1].exchange[0] == pytest.approx(
        0.041, rel=0.01
    )


def test_find_series_ignores_other_networks_and_failures(record: Make) -> None:
    failed = Record(attempts=(replace(record(2, 100).attempts[0], measurement=None),))
    assert find_series([record(1, 100), failed, record(2, 100, workload="deepmnist")]) == []


def test_find_series_refuses_two_numbers_of_nodes(record: Make) -> None:
    with pytest.raises(SteptimeError, match="several numbers of nodes"):
        find_series([record(1, 100), record(2, 130), record(2, 150, nodes=2)])


def test_find_series_shares_independent_ranks_between_links(record: Make) -> None:
    links = [
        record(2, step, interconnect=word, launch="hosts")
        for word, step in (("slow", 150), ("fast", 120))
    ]
    bare = record(2, 105, exchange="independent", launch="hosts")
    slow, fast = sorted(
        find_series([record(1, 100), bare, *links]), key=lambda one: -one.points[1].step[0]
    )
    assert (slow.case.interconnect, fast.case.interconnect) == ("slow", "fast")
    assert slow.points[1].independent is fast.points[1].independent is not None


def test_find_series_separates_launches(record: Make) -> None:
    records = [
        record(1, 100),
        record(2, 120, launch="hosts"),
        record(2, 105, exchange="independent"),
    ]
    assert only(records).points[1].independent is None


def test_series_clean_excludes_oversubscribed_points(record: Make) -> None:
    series = only([record(1, 100), record(2, 130), record(4, 300)])
    assert [point.oversubscribed for point in series.points] == ["", "", "4 threads on 2 CPUs"]
    assert [point.devices for point in series.clean] == [1, 2]


def test_oversubscription_counts_ranks_per_host(record: Make) -> None:
    assert (
        oversubscription(record(4, 300, nodes=2)) == "" and oversubscription(record(4, 300)) != ""
    )


def test_oversubscription_counts_ranks_per_gpu(record: Make) -> None:
    machine = {"gpus": [{"name": "one"}]}
    assert oversubscription(record(2, 100, device="cuda:0", machine=machine)) == "2 ranks on 1 GPU"
    assert oversubscription(record(2, 100, device="cuda:0", machine={"gpus": None})) == ""


def test_plan_cases_has_every_count_with_and_without_exchange() -> None:
    cases = set(plan_cases(Case(workload="lenet5", batch_size=64), [1, 2], ("weak", "strong")))
    found = {(case.devices, case.batch_size, case.exchange) for case in cases}
    words = ("allreduce", "independent")
    assert found == {(1, 64, "none"), *((2, batch, word) for batch in (64, 32) for word in words)}


def test_plan_cases_refuses_a_batch_that_cannot_be_shared() -> None:
    with pytest.raises(
        SteptimeError, match=r"64 cannot be shared evenly by 3 devices.*batch_size=63"
    ):
        list(plan_cases(Case(workload="lenet5", batch_size=64), [1, 3], ("strong",)))


def test_share_threads_leaves_room_for_all_ranks() -> None:
    case = Case(workload="lenet5")
    assert [share_threads(case, [1, 2, 4], cpus).threads for cpus in (2, 16)] == [1, 4]
    assert share_threads(Case(workload="lenet5", threads=3), [1, 2], 16).threads == 3


def test_select_cases_keeps_cases_of_the_kind() -> None:
    cases = list(
        dict.fromkeys(
            plan_cases(Case(workload="lenet5", batch_size=64), [1, 2], ("weak", "strong"))
        )
    )
    assert {case.batch_size for case in select_cases(cases, ("weak",))} == {64}
    assert len(select_cases(cases, ("weak", "strong"))) == len(cases) == 5


def test_select_cases_is_empty_without_exchange() -> None:
    cases = [Case(workload="lenet5", devices=count, exchange="independent") for count in (1, 2)]
    assert select_cases(cases, ("weak",)) == []
