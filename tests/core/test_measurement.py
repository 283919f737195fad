from __future__ import annotations

import json
from typing import Any

from steptime.core.measurement import Block, Measurement, RankSamples


def block(samples: int) -> Block:
    counts = dict.fromkeys(
        ("cpu_ns", "faults", "major_faults", "switches", "involuntary_switches"), 0
    )
    return Block(samples=samples, host_ns=1, dispatch_ns=1, **counts)


def measurement(**changes: Any) -> Measurement:
    base: dict[str, Any] = {
        "group": 1,
        "stamps": [0, 5, 9, 20],
        "device_ns": None,
        "blocks": (block(1), block(2)),
    }
    return Measurement(**{**base, "cut": 1, "steady": True, "clock": {}, "starts": {}, **changes})


def test_samples_ns_tile_the_clock() -> None:
    made = measurement()
    assert made.samples_ns == (5, 4, 11)
    assert sum(made.samples_ns) == made.stamps[-1] - made.stamps[0]


def test_samples_ns_are_the_devices_if_it_has_a_clock() -> None:
    assert measurement(device_ns=[4, 4, 10]).samples_ns == (4, 4, 10)


def test_rank_samples_survive_a_round_trip_through_json() -> None:
    rank = RankSamples(
        rank=1,
        node="far",
        stamps=[3, 8, 10, 21],
        device_ns=None,
        idle_ns=(0, 2),
        cpu_ns=1,
        queue_ns=2,
        cut=0,
        steady=True,
        offset_ns=(-3, -4),
    )
    values = json.loads(json.dumps(rank.to_dict()))
    assert RankSamples.from_dict({**values, "a later field": 1}) == rank
