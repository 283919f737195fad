"""Speed-up and efficiency."""

from __future__ import annotations

from math import exp, hypot, log
from typing import Any

import pytest

from steptime.analysis.scaling.speedup import ScalingTable, speedup_tables

SAME = ("model", "framework", "device")


def row(devices: int, speed: float, **changes: Any) -> dict[str, Any]:
    known = {
        "id": f"{devices} {speed}",
        "model": "m",
        "framework": "f",
        "devices": devices,
        "effective_batch": 64,
    }
    return {**known, "throughput": speed, **changes}


def only(rows: list[dict[str, Any]], **options: Any) -> ScalingTable:
    (table,) = speedup_tables(rows, SAME, **options)
    return table


def test_speedup_tables_with_a_fixed_total_batch_are_strong() -> None:
    table = only([row(1, 100.0), row(4, 300.0)])
    assert (table.kind, table.configuration["effective_batch"]) == ("strong", 64)
    assert [(line.count, line.speed_up.value, line.efficiency.value) for line in table.lines] == [
        (1, 1, 1),
        (4, 3, 0.75),
    ]


def test_speedup_tables_with_a_fixed_device_batch_are_weak() -> None:
    rows = [row(count, 90.0 * count, effective_batch=None, replica_batch=8) for count in (1, 2)]
    assert (only(rows).kind, only(rows).configuration["replica_batch"]) == ("weak", 8)
    assert (
        only([row(count, 90.0 * count, effective_batch=8 * count) for count in (1, 2)]).kind
        == "weak"
    )


def test_efficiency_above_one_is_flagged() -> None:
    sure = {"throughput_low": 399.0, "throughput_high": 401.0}
    first, second = row(1, 100.0, throughput_low=99.0, throughput_high=101.0), row(2, 400.0, **sure)
    line = only([first, second]).lines[1]
    assert line.efficiency.value == 2.0 and line.flags == ("above 100 %, beyond its interval",)
    assert only([row(1, 100.0), row(2, 201.0)]).lines[1].flags == ("above 100 %",)


def test_speed_up_half_widths_add_as_squares() -> None:
    first = row(1, 100.0, throughput_low=98.0, throughput_high=102.0)
    second = row(2, 150.0, throughput_low=145.0, throughput_high=155.0)
    found = only([first, second]).lines[1].speed_up
    reach = hypot(log(102 / 98) / 2, log(155 / 145) / 2)
    assert (found.low, found.high) == pytest.approx((1.5 * exp(-reach), 1.5 * exp(reach)))


def test_speed_up_needs_both_intervals_for_its_own() -> None:
    found = (
        only([row(1, 100.0), row(2, 150.0, throughput_low=145.0, throughput_high=155.0)])
        .lines[1]
        .speed_up
    )
    assert (found.low, found.high) == (None, None)


def test_line_uses_the_fastest_result_and_counts_all() -> None:
    line = only([row(1, 100.0), row(2, 150.0), row(2, 180.0)]).lines[1]
    assert (line.run, line.n, line.throughput) == ("2 180.0", 2, 180.0)


def test_speedup_table_may_begin_with_several_devices() -> None:
    assert only([row(2, 100.0), row(8, 200.0)]).lines[1].efficiency.value == 0.5


def test_speedup_tables_derive_speed_from_one_device() -> None:
    rows = [row(count, 0, throughput=None, throughput_per_device=50.0) for count in (1, 2)]
    assert [line.throughput for line in only(rows).lines] == [50.0, 100.0]


def test_line_flags_another_server() -> None:
    table = only([row(1, 100.0, server="a"), row(2, 150.0, server="b")])
    assert table.lines[1].flags == ("other server than the first: b",)


def test_speedup_tables_separate_configurations() -> None:
    assert (
        speedup_tables(
            [row(1, 100.0), row(2, 150.0, model="other"), row(2, 150.0, effective_batch=32)], SAME
        )
        == []
    )


def test_speedup_tables_over_threads_are_strong_only() -> None:
    rows = [row(1, speed, threads=threads) for threads, speed in ((1, 10.0), (2, 18.0))]
    assert (
        only(rows, over="threads").kind,
        only(rows, over="threads").lines[1].efficiency.value,
    ) == ("strong", 0.9)
    assert speedup_tables(rows, SAME) == []
