"""How a configuration's speed grows with its devices: speed-up and efficiency with intervals. Does no I/O.

A ratio of two results counts them as independent: on a log scale their half-widths add as squares. Efficiency is the
speed-up divided by how many times the devices are more, and is never clamped: above 100 % it is shown and flagged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from steptime.analysis.intervals import Ratio, ratio

Row = Mapping[str, Any]  # a result by the catalogue's names
HELD = {"weak": "replica_batch", "strong": "effective_batch"}
"""What stays the same while devices are added: the batch of each, or the batch of all together."""
METHOD = (
    "Speed-up is the throughput of all devices together, divided by that on the fewest; efficiency is that divided by "
    "how many times more devices there are, and is not clamped. Intervals: two independent results, whose relative "
    "half-widths add as squares on a log scale; a machine's change between sessions is not in them."
)


@dataclass(frozen=True)
class Line:
    """One number of devices. `n` results were there, the fastest speaks."""

    count: int
    run: str
    n: int
    throughput: float
    speed_up: Ratio
    efficiency: Ratio
    flags: tuple[str, ...]


@dataclass(frozen=True)
class Scaling:
    kind: str  # weak, or strong
    over: str  # what grows: devices, nodes or threads
    configuration: dict[str, Any]
    lines: tuple[Line, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def scalings(
    rows: Iterable[Row], same: Sequence[str], *, kind: str = "", over: str = "devices"
) -> list[Scaling]:
    """A table for each configuration that was measured with two numbers of devices or more; those with the most
    first. `same` are the names in which a configuration's rows must agree, besides the batch; no kind: both."""
    known = [full for row in rows if (full := _full(row, over))]
    kinds = [
        one for one in HELD if kind in ("", one) and (over != "threads" or one == "strong")
    ]  # threads share it
    found = [table for one in kinds for table in _tables(known, one, same, over)]
    return sorted(found, key=lambda table: -len(table.lines))


def _tables(rows: Sequence[Row], kind: str, same: Sequence[str], over: str) -> Iterator[Scaling]:
    names = (*(name for name in same if name not in (over, *HELD.values())), HELD[kind])
    for values, group in _groups(rows, names).items():
        told = {
            name: value
            for name, value in zip(names, values, strict=True)
            if value not in (None, "")
        }
        if lines := _lines(group, over):
            yield Scaling(kind, over, told, lines)


def _full(row: Row, over: str) -> dict[str, Any] | None:
    """With both batches and the speed of all together, as far as one follows from the others."""
    count, devices = row.get(over), row.get("devices") or 1
    if not count or count != int(count):
        return None
    speed, each = _speed(row, devices), row.get("replica_batch")
    whole = row.get("effective_batch") or (each * devices if each else None)
    each = each or (whole / devices if whole else None)
    if not speed or speed["throughput"] <= 0 or not whole:
        return None
    return {**row, over: int(count), "replica_batch": each, "effective_batch": whole, **speed}


def _speed(row: Row, devices: float) -> dict[str, Any] | None:
    names = [f"throughput{end}" for end in ("", "_low", "_high")]
    if row.get("throughput"):
        return {name: row.get(name) for name in names}
    if alone := row.get("throughput_per_device"):
        ends = (row.get(f"throughput_per_device{end}") for end in ("_low", "_high"))
        return dict(
            zip(names, (alone * devices, *(end and end * devices for end in ends)), strict=True)
        )
    return None


def _groups(rows: Iterable[Row], names: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(name) for name in names), []).append(row)
    return groups


def _lines(rows: Sequence[Row], over: str) -> tuple[Line, ...]:
    """None for a single number of devices: nothing grows."""
    counts = _groups(rows, (over,))
    if len(counts) < 2:
        return ()
    best = {
        key[0]: max(group, key=lambda row: row["throughput"])
        for key, group in sorted(counts.items())
    }
    first = best[min(best)]
    return tuple(_line(first, row, len(counts[count,]), over) for count, row in best.items())


def _line(first: Row, row: Row, n: int, over: str) -> Line:
    times = row[over] / first[over]
    speed_up = ratio(_ends(row), _ends(first)) if row is not first else Ratio(1.0, None, None)
    efficiency = speed_up.scaled(1 / times)
    return Line(
        row[over],
        row["id"],
        n,
        row["throughput"],
        speed_up,
        efficiency,
        _flags(first, row, efficiency),
    )


def _ends(row: Row) -> tuple[float, float | None, float | None]:
    return row["throughput"], row.get("throughput_low"), row.get("throughput_high")


def _flags(first: Row, row: Row, efficiency: Ratio) -> tuple[str, ...]:
    found = []
    if efficiency.value > 1 and row is not first:
        sure = efficiency.low is not None and efficiency.low > 1
        found.append("above 100 %, beyond its interval" if sure else "above 100 %")
    found += [
        f"other {name.replace('_', ' ')} than the first: {row[name]}"
        for name in ("server", "interconnect", "software")
        if row.get(name) and first.get(name) and row[name] != first[name]
    ]
    return tuple(found)
