"""How a configuration's speed grows with its devices: speed-up and efficiency with intervals.

A ratio takes its two results as independent: on a log scale their half-widths add as squares.
Efficiency is the speed-up over the growth in devices, and is never clamped: above 100 % it is
shown and flagged. Does no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from steptime.analysis.intervals import Ends, Ratio, ratio

# A result by the catalogue's names.
Row = Mapping[str, Any]
# What stays the same while devices are added: the batch of each, or the batch of all.
HELD = {"weak": "replica_batch", "strong": "effective_batch"}
METHOD = (
    "Speed-up is the throughput of all devices over that of the fewest devices. Efficiency is the "
    "speed-up over the growth in devices, and is not clamped. Intervals take two results as "
    "independent: their relative half-widths add as squares on a log scale. They do not include a "
    "machine's change between sessions."
)


@dataclass(frozen=True)
class Line:
    """One number of devices: the fastest of its `n` results."""

    count: int
    run: str
    n: int
    throughput: float
    speed_up: Ratio
    efficiency: Ratio
    flags: tuple[str, ...]


@dataclass(frozen=True)
class ScalingTable:
    kind: str  # weak or strong
    # What grows: devices, nodes or threads.
    over: str
    configuration: dict[str, Any]
    lines: tuple[Line, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def speedup_tables(
    rows: Iterable[Row], same: Sequence[str], *, kind: str = "", over: str = "devices"
) -> list[ScalingTable]:
    """A table for each configuration with two numbers of devices or more; the longest first.

    `same` names the dimensions in which the rows of a configuration must agree, besides the
    batch. Without a kind, both kinds are made."""
    kinds = [name for name in HELD if kind in ("", name)]
    if over == "threads":
        # Threads share the batch of their device, so adding them is always strong scaling.
        kinds = [name for name in kinds if name == "strong"]
    completed = [_complete_row(row, over) for row in rows]
    usable = [row for row in completed if row is not None]
    tables: list[ScalingTable] = []
    for name in kinds:
        tables += _tables(usable, name, same, over)
    return sorted(tables, key=lambda table: -len(table.lines))


def _tables(
    rows: Sequence[Row], kind: str, same: Sequence[str], over: str
) -> Iterator[ScalingTable]:
    names = [name for name in same if name not in (over, *HELD.values())]
    names.append(HELD[kind])
    for values, group in _groups(rows, names).items():
        lines = _lines(group, over)
        if lines:
            pairs = zip(names, values, strict=True)
            configuration = {name: value for name, value in pairs if value not in (None, "")}
            yield ScalingTable(kind, over, configuration, lines)


def _complete_row(row: Row, over: str) -> Row | None:
    """With both batches and the speed of all devices, as far as they follow from each other."""
    count = row.get(over)
    devices = row.get("devices") or 1
    if not count or count != int(count):
        return None
    replica_batch = row.get("replica_batch")
    effective_batch = row.get("effective_batch")
    if not effective_batch and replica_batch:
        effective_batch = replica_batch * devices
    if not replica_batch and effective_batch:
        replica_batch = effective_batch / devices
    speed = _aggregate_speed(row, devices)
    if speed is None or speed.value <= 0 or not effective_batch:
        return None
    return {
        **row,
        over: int(count),
        "replica_batch": replica_batch,
        "effective_batch": effective_batch,
        "throughput": speed.value,
        "throughput_low": speed.low,
        "throughput_high": speed.high,
    }


def _aggregate_speed(row: Row, devices: float) -> Ends | None:
    if row.get("throughput"):
        return _ends(row)
    per_device = row.get("throughput_per_device")
    if not per_device:
        return None
    low = row.get("throughput_per_device_low")
    high = row.get("throughput_per_device_high")
    return Ends(per_device * devices, low and low * devices, high and high * devices)


def _groups(rows: Iterable[Row], names: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(name) for name in names), []).append(row)
    return groups


def _lines(rows: Sequence[Row], over: str) -> tuple[Line, ...]:
    """None for a single number of devices: nothing grows."""
    groups: dict[int, list[Row]] = {}
    for row in rows:
        groups.setdefault(row[over], []).append(row)
    if len(groups) < 2:
        return ()
    first = _fastest(groups[min(groups)])
    return tuple(_line(first, groups[count], over) for count in sorted(groups))


def _fastest(group: Sequence[Row]) -> Row:
    return max(group, key=lambda row: float(row["throughput"]))


def _line(first: Row, group: Sequence[Row], over: str) -> Line:
    row = _fastest(group)
    speed_up = Ratio(1.0, None, None)
    if row is not first:
        speed_up = ratio(_ends(row), _ends(first))
    growth = row[over] / first[over]
    efficiency = speed_up.scale(1 / growth)
    return Line(
        count=row[over],
        run=row["id"],
        n=len(group),
        throughput=row["throughput"],
        speed_up=speed_up,
        efficiency=efficiency,
        flags=_flags(first, row, efficiency),
    )


def _ends(row: Row) -> Ends:
    return Ends(row["throughput"], row.get("throughput_low"), row.get("throughput_high"))


def _flags(first: Row, row: Row, efficiency: Ratio) -> tuple[str, ...]:
    flags = []
    if efficiency.value > 1 and row is not first:
        is_sure = efficiency.low is not None and efficiency.low > 1
        flags.append("above 100 %, beyond its interval" if is_sure else "above 100 %")
    for name in ("server", "interconnect", "software"):
        if row.get(name) and first.get(name) and row[name] != first[name]:
            flags.append(f"other {name} than the first: {row[name]}")
    return tuple(flags)
