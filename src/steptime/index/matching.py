"""Two sets of runs side by side: only configurations that both have, each ratio with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from typing import Any

from steptime.analysis.intervals import Ends, ratio, student_quantile
from steptime.index.catalogue import ALONE, DIMENSIONS, METRICS, word
from steptime.index.rows import Row

WORK = ("model", "phase", "unit", "operator", "shape")
"""Who differs in these does different work: a ratio of speeds says nothing about who is faster."""
SHOWN_VALUES = 6


@dataclass(frozen=True)
class Pair:
    what: dict[str, Any]
    a: Row
    b: Row
    ratio: float
    low: float | None
    high: float | None
    verdict: str


@dataclass(frozen=True)
class Table:
    differs: dict[
        str, tuple[str, str]
    ]  # what A and B differ in as a whole, with the values of each: what is compared
    pairs: list[Pair]
    only_a: int
    only_b: int
    mean: tuple[float, float | None, float | None] | None  # geometric

    @property
    def telling(self) -> list[str]:
        """What tells the pairs apart; all else is the same in every one."""
        found = [
            name for name in DIMENSIONS if len({pair.what.get(name) for pair in self.pairs}) > 1
        ]
        return (
            found
            or [name for name in ("model", "phase", "precision") if name not in self.differs]
            or ["source"]
        )

    @property
    def different_work(self) -> list[str]:
        return [DIMENSIONS[name].label.lower() for name in WORK if name in self.differs]


def matched(metric: str, a: list[Row], b: list[Row]) -> Table:
    """The best run of each configuration speaks for it."""
    sides = [_best(metric, rows) for rows in (a, b)]
    names = [name for name in DIMENSIONS if name not in ALONE and _differs(name, *sides)]
    keyed = [{_key(row, names): row for row in _best(metric, side, names)} for side in sides]
    both = [key for key in keyed[0] if key in keyed[1]]
    pairs = sorted(
        (_pair(metric, keyed[0][key], keyed[1][key], names) for key in both),
        key=lambda pair: pair.ratio,
    )
    only_a, only_b = (len(side) - len(both) for side in keyed)
    differs = {name: (_values(name, sides[0]), _values(name, sides[1])) for name in names}
    return Table(differs, pairs, only_a, only_b, geometric([pair.ratio for pair in pairs]))


def _best(metric: str, rows: list[Row], but: Sequence[str] = ()) -> list[Row]:
    better = max if METRICS[metric].better == "more" else min
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if (row.get(metric) or 0) > 0:  # of others there is no ratio
            groups.setdefault(_key(row, but), []).append(row)
    return [better(group, key=lambda row: row[metric]) for group in groups.values()]


def _key(row: Row, but: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in DIMENSIONS if name not in (*ALONE, *but))


def _differs(name: str, a: list[Row], b: list[Row]) -> bool:
    """No value in common: the two sides were chosen by it."""
    one, two = ({row.get(name) for row in side} for side in (a, b))
    return bool(one and two) and not one & two


def _values(name: str, rows: list[Row]) -> str:
    found = sorted({_word(row.get(name)) for row in rows})
    more = f" and {len(found) - SHOWN_VALUES} more" if len(found) > SHOWN_VALUES else ""
    return ", ".join(found[:SHOWN_VALUES]) + more


def _word(value: Any) -> str:
    return "–" if value in (None, "") else word(value)


def _pair(metric: str, a: Row, b: Row, differs: list[str]) -> Pair:
    found = ratio(_ends(metric, b), _ends(metric, a))
    kept = (name for name in DIMENSIONS if name not in (*ALONE, *differs))
    what = {name: _word(b[name]) for name in kept if b.get(name) not in (None, "")}
    return Pair(
        what, a, b, found.value, found.low, found.high, _verdict(metric, found.low, found.high)
    )


def _ends(metric: str, row: Row) -> Ends:
    return row[metric], row.get(f"{metric}_low"), row.get(f"{metric}_high")


def _verdict(metric: str, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "unknown"
    if low <= 1 <= high:
        return "same or inconclusive"
    return "better" if (low > 1) == (METRICS[metric].better == "more") else "worse"


def geometric(ratios: list[float]) -> tuple[float, float | None, float | None] | None:
    """With the 95 % interval that follows from how much the configurations differ."""
    logs = [log(ratio) for ratio in ratios]
    if not logs:
        return None
    mean, count = sum(logs) / len(logs), len(logs)
    if count < 2:
        return exp(mean), None, None
    deviation = sqrt(sum((value - mean) ** 2 for value in logs) / (count - 1))
    reach = student_quantile(count - 1) * deviation / sqrt(count)
    return exp(mean), exp(mean - reach), exp(mean + reach)
