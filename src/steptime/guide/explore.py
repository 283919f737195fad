"""What the explore page shows of a query: choices, facets with counts, the notice about mixing, points as a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from steptime.guide.catalogue import DIMENSIONS, METRICS
from steptime.guide.index import Index, Point
from steptime.guide.query import CHOICES, Query, Where

FACETS = (
    "phase", "framework", "model", "precision", "mode", "device", "devices", "replica_batch", "data", "server",
    "software", "source", "suite", "submitter",
)  # fmt: skip
SHOWN_VALUES = 12


@dataclass(frozen=True)
class Choice:
    value: str
    count: int
    chosen: bool


@dataclass(frozen=True)
class Facet:
    name: str
    label: str
    choices: list[Choice]
    hidden: int  # values beyond those shown

    @property
    def open(self) -> bool:
        return any(choice.chosen for choice in self.choices)


def facets(index: Index, query: Query, names: Iterable[str] = FACETS) -> list[Facet]:
    """Of dimensions that have something to choose. What is chosen is always shown."""
    chosen = dict(query.where)
    found = []
    for name, counts in index.facets(query, list(names)).items():
        wanted = chosen.get(name, ())
        values = [*(value for value in wanted if value not in counts), *counts]
        kept = [value for place, value in enumerate(values) if place < SHOWN_VALUES or value in wanted]
        if len(counts) > 1 or wanted:
            choices = [Choice(value, counts.get(value, 0), value in wanted) for value in kept]
            found.append(Facet(name, DIMENSIONS[name].label, choices, len(values) - len(kept)))
    return found


@dataclass(frozen=True)
class Mix:
    """A dimension of which a point holds several values, and the two ways out."""

    label: str
    count: int
    fix: str  # the same question with the commonest value only
    split: str  # the same question with small charts, or colours, of it


def mixes(index: Index, query: Query) -> list[Mix]:
    counts = index.mixed(query)
    common = index.facets(query, list(counts)) if counts else {}
    found = []
    for name, count in counts.items():
        value = next(iter(common[name]), "")
        split = replace(query, split=name) if not query.split else replace(query, by=(*query.by, name))
        found.append(Mix(DIMENSIONS[name].label, count, with_filter(query, name, value).to_url(), split.to_url()))
    return found


def with_filter(query: Query, name: str, value: str) -> Query:
    return replace(query, where=(*without(query.where, name), (name, (value,))))


def without(where: Where, name: str, value: str | None = None) -> Where:
    """Less this dimension, or less this one value of it."""
    kept = []
    for key, values in where:
        rest = () if value is None else tuple(one for one in values if one != value)
        if key != name or rest:
            kept.append((key, values if key != name else rest))
    return tuple(kept)


def chips(query: Query) -> list[tuple[str, str]]:
    """Each filter in words, with the question that lacks it."""
    return [
        (f"{'not ' if key[0] == '!' else ''}{value}", replace(query, where=without(query.where, key, value)).to_url())
        for key, values in query.where
        for value in values
    ]


def controls(query: Query) -> list[dict[str, Any]]:
    """The form's fields: each is a word of the query."""
    axes = [(name, known.label) for name, known in DIMENSIONS.items()]
    metrics = [(name, known.axis) for name, known in METRICS.items()]
    none = [("", "–")]
    return [
        _field("y", "Y", metrics, query.y),
        _field("x", "X", [*axes, *metrics], query.x),
        _field("by", "Group by", [*none, *axes], query.by[0] if query.by else ""),
        _field("by", "and by", [*none, *axes], query.by[1] if len(query.by) > 1 else "", id="by2"),
        _field("split", "Small multiples", [*none, *axes], query.split),
        *(
            _field(name, label, [(word, word or "–") for word in CHOICES[name]], getattr(query, name))
            for name, label in (
                ("agg", "Aggregate"),
                ("err", "Error bars"),
                ("log", "Log axis"),
                ("scaling", "Scaling"),
            )
        ),
    ]


def _field(name: str, label: str, options: list[tuple[str, str]], value: str, id: str = "") -> dict[str, Any]:
    return {"name": name, "label": label, "options": options, "value": value, "id": id or name}


def table(query: Query, points: list[Point]) -> list[dict[str, Any]]:
    """The chart's data, for people who read numbers and for those who can not see charts."""
    names = (["series"] if query.series else []) + list(query.groups)
    return [
        {
            "groups": [point.groups.get(name) for name in names],
            "x": point.x,
            "value": point.value,
            "low": point.low,
            "high": point.high,
            "n": point.n,
            "run": point.run,
        }
        for point in points
    ]
