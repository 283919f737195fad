"""Two sets of runs side by side: the configurations that both have, with their ratios."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp, log, sqrt
from typing import Any

from steptime.analysis.intervals import Ends, ratio, student_quantile
from steptime.index.catalogue import ALONE, DIMENSIONS, METRICS, format_value
from steptime.index.rows import Row

# Sides that differ in these do different work: a ratio of speeds does not say which is faster.
WORK = ("model", "phase", "unit", "operator", "shape")
SHOWN_VALUES = 6
MISSING = "–"

Facts = dict[str, tuple[str, str]]  # by name, what it is in A and in B
Mean = tuple[float, float | None, float | None]  # a geometric mean, and its interval if it has one


@dataclass(frozen=True)
class Pair:
    what: dict[str, Any]
    a: Row
    b: Row
    ratio: float
    low: float | None
    high: float | None
    verdict: str
    level: float = 0.95  # of the interval
    # Why there is no verdict; empty if there is one.
    refused: str = ""
    # What a lower precision costs; empty if the precision is the same, or nobody measured it.
    accuracy_loss: str = ""


@dataclass(frozen=True)
class Table:
    # What A and B differ in as a whole, with the values of each: what is compared.
    differs: dict[str, tuple[str, str]]
    pairs: list[Pair]
    only_a: int
    only_b: int
    mean: Mean | None
    # Results measured here: by how much their sessions may differ, if any were compared.
    deviations: tuple[str, ...] = ()
    # Results measured here: how many pairs have no verdict, because they were too many to read.
    unread: int = 0
    # Results measured here: what else differs.
    facts: Facts = field(default_factory=dict)

    @property
    def telling_dimensions(self) -> list[str]:
        """Dimensions that tell the pairs apart; all others are the same in every pair."""
        names = []
        for name in DIMENSIONS:
            values = {pair.what.get(name) for pair in self.pairs}
            if len(values) > 1:
                names.append(name)
        if names:
            return names
        usual = [name for name in ("model", "phase", "precision") if name not in self.differs]
        return usual or ["source"]

    @property
    def different_work(self) -> list[str]:
        return [DIMENSIONS[name].label.lower() for name in WORK if name in self.differs]


def match_rows(metric: str, a_rows: list[Row], b_rows: list[Row]) -> Table:
    """Each configuration is represented by its best run."""
    a_best = _best(metric, a_rows)
    b_best = _best(metric, b_rows)
    # What the sides differ in as a whole is compared; all else must be equal within a pair.
    names = [name for name in DIMENSIONS if name not in ALONE and _differs(name, a_best, b_best)]
    a_side = {_key(row, names): row for row in _best(metric, a_best, names)}
    b_side = {_key(row, names): row for row in _best(metric, b_best, names)}
    common = [key for key in a_side if key in b_side]
    pairs = [_make_pair(metric, a_side[key], b_side[key], names) for key in common]
    pairs.sort(key=lambda pair: pair.ratio)
    return Table(
        differs={name: (_list_values(name, a_best), _list_values(name, b_best)) for name in names},
        pairs=pairs,
        only_a=len(a_side) - len(common),
        only_b=len(b_side) - len(common),
        mean=geometric_mean([pair.ratio for pair in pairs]),
    )


def _best(metric: str, rows: list[Row], ignored: Sequence[str] = ()) -> list[Row]:
    """The best run of each configuration, which the `ignored` dimensions do not tell apart."""
    better = max if METRICS[metric].better == "more" else min
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        # Other values have no ratio.
        if (row.get(metric) or 0) > 0:
            groups.setdefault(_key(row, ignored), []).append(row)
    return [better(group, key=lambda row: row[metric]) for group in groups.values()]


def _key(row: Row, ignored: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in DIMENSIONS if name not in (*ALONE, *ignored))


def _differs(name: str, a_rows: list[Row], b_rows: list[Row]) -> bool:
    """Whether no value is common: the two sides were chosen by this dimension."""
    a_values = {row.get(name) for row in a_rows}
    b_values = {row.get(name) for row in b_rows}
    return bool(a_values and b_values) and not a_values & b_values


def _list_values(name: str, rows: list[Row]) -> str:
    values = sorted({_format(row.get(name)) for row in rows})
    text = ", ".join(values[:SHOWN_VALUES])
    if len(values) > SHOWN_VALUES:
        text += f" and {len(values) - SHOWN_VALUES} more"
    return text


def _format(value: Any) -> str:
    return MISSING if value in (None, "") else format_value(value)


def _make_pair(metric: str, a: Row, b: Row, differs: list[str]) -> Pair:
    estimate = ratio(_ends(metric, b), _ends(metric, a))
    what = {}
    for name in DIMENSIONS:
        if name not in (*ALONE, *differs) and b.get(name) not in (None, ""):
            what[name] = _format(b[name])
    verdict = verdict_of(metric, estimate.low, estimate.high)
    return Pair(what, a, b, estimate.value, estimate.low, estimate.high, verdict)


def _ends(metric: str, row: Row) -> Ends:
    return Ends(row[metric], row.get(f"{metric}_low"), row.get(f"{metric}_high"))


def verdict_of(metric: str, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "unknown"
    if low <= 1 <= high:
        return "same or inconclusive"
    rises = low > 1
    return "better" if rises == (METRICS[metric].better == "more") else "worse"


def geometric_mean(ratios: list[float]) -> Mean | None:
    """With the 95 % interval that follows from how much the configurations differ."""
    logs = [log(value) for value in ratios]
    count = len(logs)
    if not logs:
        return None
    mean = sum(logs) / count
    if count < 2:
        return exp(mean), None, None
    # The configurations are the sample: the mean says what to expect of another one.
    deviation = sqrt(sum((value - mean) ** 2 for value in logs) / (count - 1))
    reach = student_quantile(count - 1) * deviation / sqrt(count)
    return exp(mean), exp(mean - reach), exp(mean + reach)
