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


def test_samples_tile_the_clock() -> None:
    made = measurement()
    assert made.samples_ns == (5, 4, 11)
    assert sum(made.samples_ns) == made.stamps[-1] - made.stamps[0]


def test_the_devices_clock_speaks_where_there_is_one() -> None:
    assert measurement(device_ns=[4, 4, 10]).samples_ns == (4, 4, 10)


def test_it_survives_being_written() -> None:
    times = {"stamps": [3, 8, 10, 21], "device_ns": None, "idle_ns": (0, 2)}
    rank = RankSamples(
        rank=1, node="far", **times, cpu_ns=1, queue_ns=2, cut=0, steady=True, offset_ns=(-3, -4)
    )
    made = measurement(device_ns=[4, 4, 10], ranks=(rank,))
    assert Measurement.from_dict(json.loads(json.dumps(made.to_dict()))) == made


def test_what_was_written_before_there_were_ranks_is_read() -> None:
    values = {name: value for name, value in measurement().to_dict().items() if name != "ranks"}
    assert Measurement.from_dict(values) == measurement()
