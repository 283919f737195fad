"""Where the level of a configuration changes over time: a plain rule that can be checked by eye.

A run starts a new level if two things are true. Its interval lies wholly outside the intervals of
the last `RECENT` runs of the current level, and the next run lies outside on the same side. So one
odd run is no change, and the newest run alone proves none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from steptime.index.catalogue import ALONE, DIMENSIONS, METRICS
from steptime.index.rows import Row

RECENT = 3
# What may change over time in a configuration that is still the same one.
VERSIONS = ("framework_version", "software")
CONFIGURATION = tuple(name for name in DIMENSIONS if name not in (*ALONE, *VERSIONS))


@dataclass(frozen=True)
class Change:
    row: Row  # the first of the new level
    ratio: float  # to the run before it
    verdict: str  # better, or worse
    since: str  # the version before, if it changed together with the level


def find_changes(metric: str, rows: Iterable[Row]) -> dict[str, Change]:
    """The changes of level, by the id of the run that each begins with.

    Runs without an interval cannot be judged."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row["started"], row["id"])):
        if row.get(f"{metric}_low") is None or row.get(f"{metric}_high") is None:
            continue
        configuration = tuple(row.get(name) for name in CONFIGURATION)
        groups.setdefault(configuration, []).append(row)
    changes = {}
    for group in groups.values():
        for change in _changes_of_group(metric, group):
            changes[change.row["id"]] = change
    return changes


def _changes_of_group(metric: str, rows: Sequence[Row]) -> list[Change]:
    changes: list[Change] = []
    level = list(rows[:1])
    for number, row in enumerate(rows[1:], 1):
        recent = level[-RECENT:]
        side = _side(metric, recent, row)
        following = rows[number + 1 : number + 2]
        lasts = bool(following) and _side(metric, recent, following[0]) == side
        if side and lasts:
            changes.append(_make_change(metric, level[-1], row))
            level = []
        # An odd run does not widen the level.
        if not side or lasts:
            level.append(row)
    return changes


def _side(metric: str, level: Sequence[Row], row: Row) -> int:
    """1 if the row lies above the whole level, -1 if below, 0 if it overlaps with a run of it."""
    if row[f"{metric}_low"] > max(other[f"{metric}_high"] for other in level):
        return 1
    if row[f"{metric}_high"] < min(other[f"{metric}_low"] for other in level):
        return -1
    return 0


def _make_change(metric: str, before: Row, row: Row) -> Change:
    rises = row[metric] > before[metric]
    is_better = rises == (METRICS[metric].better == "more")
    old_software = before.get("software") or ""
    new_software = row.get("software") or ""
    return Change(
        row=row,
        ratio=row[metric] / before[metric] if before[metric] else float("inf"),
        verdict="better" if is_better else "worse",
        since=old_software if old_software != new_software else "",
    )
