"""Where a configuration's past changes its level: a plain rule that can be checked by eye.

A run starts a new level when its interval lies wholly outside the intervals of the last `RECENT` runs of the level so
far, and the run after it lies outside on the same side: one odd run is no change, and the newest run alone proves none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from steptime.index.catalogue import ALONE, DIMENSIONS, METRICS
from steptime.index.rows import Row

RECENT = 3
VERSIONS = ("framework_version", "software")
"""What a configuration may change in over time and still be the same one."""
CONFIGURATION = tuple(name for name in DIMENSIONS if name not in (*ALONE, *VERSIONS))


@dataclass(frozen=True)
class Change:
    row: Row  # the first of the new level
    ratio: float  # to the run before it
    verdict: str  # better, or worse
    since: str  # the version before, where it changed with the level


def changes(metric: str, rows: Iterable[Row]) -> dict[str, Change]:
    """By the id of the run that they begin with. Runs without an interval cannot be judged."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row["started"], row["id"])):
        if row.get(f"{metric}_low") is not None and row.get(f"{metric}_high") is not None:
            groups.setdefault(tuple(row.get(name) for name in CONFIGURATION), []).append(row)
    return {
        change.row["id"]: change for group in groups.values() for change in _of_one(metric, group)
    }


def _of_one(metric: str, rows: Sequence[Row]) -> list[Change]:
    found, level = [], list(rows[:1])
    for place in range(1, len(rows)):
        side = _side(metric, level[-RECENT:], rows[place])
        lasts = place + 1 < len(rows) and _side(metric, level[-RECENT:], rows[place + 1]) == side
        if side and lasts:
            found.append(_change(metric, level[-1], rows[place]))
            level = []
        if not side or lasts:  # an odd run does not widen the level
            level.append(rows[place])
    return found


def _side(metric: str, level: Sequence[Row], row: Row) -> int:
    """1 above, -1 below, 0 within reach of one of them."""
    if row[f"{metric}_low"] > max(one[f"{metric}_high"] for one in level):
        return 1
    return -1 if row[f"{metric}_high"] < min(one[f"{metric}_low"] for one in level) else 0


def _change(metric: str, before: Row, row: Row) -> Change:
    better = (row[metric] > before[metric]) == (METRICS[metric].better == "more")
    old, new = before.get("software") or "", row.get("software") or ""
    ratio = row[metric] / before[metric] if before[metric] else float("inf")
    return Change(row, ratio, "better" if better else "worse", old if old != new else "")
