from __future__ import annotations

from typing import Any

from steptime.core.measurement import Block, Measurement


def block(samples: int) -> Block:
    counts = dict.fromkeys(("cpu_ns", "faults", "major_faults", "switches", "involuntary_switches"), 0)
    return Block(samples=samples, host_ns=1, dispatch_ns=1, **counts)


def measurement(**changes: Any) -> Measurement:
    base: dict[str, Any] = {"group": 1, "stamps": [0, 5, 9, 20], "device_ns": None, "blocks": (block(1), block(2))}
    return Measurement(**{**base, "cut": 1, "steady": True, "clock": {}, "starts": {}, **changes})


def test_samples_tile_the_clock() -> None:
    made = measurement()
    assert made.samples_ns == (5, 4, 11)
    assert sum(made.samples_ns) == made.stamps[-1] - made.stamps[0]


def test_the_devices_clock_speaks_where_there_is_one() -> None:
    assert measurement(device_ns=[4, 4, 10]).samples_ns == (4, 4, 10)


def test_it_survives_being_written() -> None:
    made = measurement(device_ns=[4, 4, 10])
    assert Measurement.from_dict(made.to_dict()) == made
