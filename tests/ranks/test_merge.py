from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from steptime.core.measurement import Block, Measurement, RankSamples
from steptime.ranks.merge import combine, rank_samples


def measured(
    *blocks: tuple[int, int, list[int]], device: bool = False, **changes: Any
) -> Measurement:
    """Blocks of (start on its own clock, CPU time, sample times), with pauses between them."""
    stamps, made, end = [blocks[0][0]], [], blocks[0][0]
    for begin, cpu_ns, times in blocks:
        span = {
            "samples": len(times),
            "host_ns": sum(times),
            "dispatch_ns": sum(times),
            "cpu_ns": cpu_ns,
        }
        none = dict.fromkeys(("faults", "major_faults", "switches", "involuntary_switches"), 0)
        made.append(Block(**span, **none, queue_ns=1, idle_ns=begin - end))
        for time_ns in times:
            stamps.append(stamps[-1] + time_ns)
        end = begin + sum(times)
    device_ns = [time for _, _, times in blocks for time in times] if device else None
    values = {"group": 1, "cut": 1, "steady": True, "clock": {}, "starts": {}, **changes}
    return Measurement(stamps=stamps, device_ns=device_ns, blocks=tuple(made), **values)


def ranks_of(*measurements: Measurement) -> list[RankSamples]:
    return [
        rank_samples(rank, f"node{rank}", measurement)
        for rank, measurement in enumerate(measurements)
    ]


def test_combine_takes_the_slowest_rank_of_each_step() -> None:
    a, b = measured((1000, 5, [10, 10, 10])), measured((1000, 7, [12, 7, 20]))
    merged = combine(a, ranks_of(a, b))
    assert list(merged.stamps) == [1000, 1012, 1020, 1039] and merged.samples_ns == (12, 8, 19)
    assert [(rank.node, rank.cpu_ns, rank.queue_ns) for rank in merged.ranks] == [
        ("node0", 5, 1),
        ("node1", 7, 1),
    ]


def test_combine_begins_blocks_with_last_rank_and_drops_pauses() -> None:
    a = measured((1000, 0, [10, 10]), (1100, 0, [10]))
    b = measured((1003, 0, [10, 10]), (1098, 0, [10]))
    merged = combine(a, ranks_of(a, b))
    assert list(merged.stamps) == [1003, 1013, 1023, 1033]
    assert [(block.host_ns, block.idle_ns) for block in merged.blocks] == [(20, 0), (10, 77)]
    assert sum(merged.samples_ns) == sum(block.host_ns for block in merged.blocks)


def test_combine_corrects_offset_and_drift_of_another_host() -> None:
    a, b = measured((1000, 0, [10, 10])), measured((5000, 0, [10, 10]))
    second = replace(rank_samples(1, "far", b), offset_ns=(-4000, -3996), offset_error_ns=3)
    merged = combine(a, [rank_samples(0, "near", a), second])
    assert list(merged.stamps) == [1000, 1012, 1024] and merged.ranks[1].offset_error_ns == 3


def test_combine_aligns_devices_at_block_begin() -> None:
    a, b = measured((1000, 0, [10, 10]), device=True), measured((1000, 0, [4, 18]), device=True)
    merged = combine(a, ranks_of(a, b))
    assert merged.samples_ns == (10, 12)


def test_combine_takes_longest_warmup_and_needs_all_steady() -> None:
    a, b = measured((0, 0, [1] * 9), cut=2), measured((0, 0, [1] * 9), cut=5, steady=False)
    merged = combine(a, ranks_of(a, b))
    assert (merged.cut, merged.steady) == (5, False)


def test_rank_samples_survive_a_round_trip() -> None:
    samples = rank_samples(1, "far", measured((1000, 5, [10, 12]), (1100, 5, [9]), device=True))
    values = samples.to_dict()
    assert (values["stamps"], values["deltas"]) == (1000, [10, 12, 9])
    again = RankSamples.from_dict(values)
    assert list(again.stamps) == list(samples.stamps) and again.to_dict() == values


@pytest.mark.parametrize("count", [1, 3])
def test_combine_of_equal_ranks_changes_nothing(count: int) -> None:
    a = measured((1000, 0, [10, 11]), (1100, 0, [12]))
    merged = combine(a, ranks_of(*[a] * count))
    assert [b - c for c, b in pairwise(merged.stamps)] == [10, 11, 12] and merged.blocks == a.blocks
