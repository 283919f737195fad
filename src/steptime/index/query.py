"""A query as a URL, a command line and a test write it: `x=model&by=precision&phase=training`."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from datetime import datetime
from urllib.parse import parse_qsl, urlencode

from steptime.core.errors import SteptimeError, unknown
from steptime.index.catalogue import ALONE, DIMENSIONS, METRICS, Dimension, format_value

Where = tuple[tuple[str, tuple[str, ...]], ...]
CHOICES = {
    "agg": ("best", "min", "max", "mean", "median"),
    "err": ("interval", "deviation", "iqr", "range", "none"),
    "mark": ("point", "bar", "line"),
    "log": ("", "x", "y", "xy"),
    "scaling": ("", "weak", "strong"),
}
PLAIN = (
    "y",
    "x",
    "split",
    "agg",
    "err",
    "mark",
    "log",
    "scaling",
    "batch",
    "rel",
    "since",
    "until",
)
BATCH = {"weak": "replica_batch", "strong": "effective_batch"}
FEWEST = "fewest"
# What y=efficiency is short for: how much of its speed a processing unit keeps among others.
EFFICIENCY = {"y": "throughput_per_device", "rel": f"devices:{FEWEST}"}
# Failed results and those that cannot be true are left out unless a filter names them.
USUAL = (("status", ("ok",)), ("plausible", ("yes",)))
# A beginning of a moment is enough: moments are compared as text.
MOMENT = re.compile(r"\d{4}(-\d\d(-\d\d(T\d\d(:\d\d(:\d\d)?)?)?)?)?", re.ASCII)


@dataclass(frozen=True)
class Query:
    """What to show, of which runs.

    The same key repeated is *or*, different keys are *and*, `!key` excludes, and `key=low..high`
    is a range of numbers."""

    y: str = "throughput"
    x: str = "model"
    by: tuple[str, ...] = ()  # one colour or shape for each value
    split: str = ""  # one small chart for each value
    agg: str = "best"  # which run represents its point, or the mean or median of all
    err: str = "interval"
    mark: str = "point"  # bars need a base: a linear axis, and a dimension as x
    log: str = ""
    scaling: str = ""  # what `batch` means: of one device (weak) or of all together (strong)
    batch: str = ""
    # DIMENSION:VALUE, the series that every value is divided by. `devices:fewest` takes the fewest.
    rel: str = ""
    since: str = ""  # the beginning of an ISO 8601 moment: a year, a month, a day, …
    until: str = ""
    where: Where = ()
    # Named ones, each with filters of its own in addition to the shared ones.
    series: tuple[tuple[str, Where], ...] = ()

    def __post_init__(self) -> None:
        if self.y not in METRICS:
            raise unknown("metric", self.y, METRICS)
        if self.x not in METRICS and self.x not in DIMENSIONS:
            raise unknown("axis", self.x, [*METRICS, *DIMENSIONS])
        for name, choices in CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                raise unknown(f"value of {name}", value, filter(None, choices))
        for name in (*self.by, self.split):
            if name:
                _dimension(name)
        check_conditions(self.where)
        for _, conditions in self.series:
            check_conditions(conditions)
        for moment in (self.since, self.until):
            if moment and not _is_moment(moment):
                raise SteptimeError(
                    "since and until are days, as 2026-01-31, or moments, as 2026-01-31T12:00; "
                    f"found {moment!r}."
                )
        self._check_scaling()
        self._check_baseline()

    def _check_scaling(self) -> None:
        if bool(self.scaling) != bool(self.batch) or (self.batch and not self.batch.isdecimal()):
            raise SteptimeError(
                "scaling and batch go together, as in scaling=weak&batch=128; "
                f"found {self.to_url()!r}."
            )

    def _check_baseline(self) -> None:
        if not self.rel:
            return
        name, colon, value = self.rel.partition(":")
        if not colon or name not in (*self.by, self.x) or self.x in METRICS:
            raise SteptimeError(
                "rel is DIMENSION:VALUE of x or by, and x a dimension, "
                f"as in by=framework&rel=framework:pytorch; found {self.rel!r}."
            )
        if value == FEWEST and not DIMENSIONS[name].number:
            raise SteptimeError(
                f"{FEWEST} needs a dimension of numbers, as in x=devices&rel=devices:{FEWEST}; "
                f"found {name}."
            )

    @property
    def groups(self) -> tuple[str, ...]:
        """The dimensions that have one value in each point."""
        names = (self.split, self.x, *self.by)
        return tuple(dict.fromkeys(name for name in names if name in DIMENSIONS))

    @property
    def columns(self) -> list[str]:
        """What tells the points of this query apart, as columns of a table."""
        return ["series", *self.groups] if self.series else list(self.groups)

    @property
    def bars(self) -> bool:
        return self.mark == "bar" and "y" not in self.log and self.x in DIMENSIONS

    @property
    def conditions(self) -> Where:
        """All of them, with what is left out unless a filter names it."""
        return self._with_defaults(())

    @property
    def branches(self) -> tuple[tuple[str, Where], ...]:
        """Each named series with all its conditions; without any, the query itself, unnamed."""
        if not self.series:
            return (("", self.conditions),)
        return tuple((name, self._with_defaults(extra)) for name, extra in self.series)

    def _with_defaults(self, extra: Where) -> Where:
        where = (*self.where, *extra)
        named = {key.lstrip("!") for key, _ in where}
        if self.scaling:
            where += ((BATCH[self.scaling], (self.batch,)),)
        defaults = tuple(pair for pair in USUAL if pair[0] not in named)
        return where + defaults

    def to_url(self) -> str:
        """Without what is a default anyway."""
        default = {field.name: field.default for field in fields(self)}
        pairs = []
        for name in PLAIN:
            value = getattr(self, name)
            if value != default[name]:
                pairs.append((name, value))
        pairs += [("by", name) for name in self.by]
        pairs += _flatten(self.where)
        pairs += [("s", f"{name}|{urlencode(_flatten(extra))}") for name, extra in self.series]
        return urlencode(pairs)


def _flatten(where: Where) -> list[tuple[str, str]]:
    return [(key, value) for key, values in where for value in values]


def _is_unicode(text: str) -> bool:
    """Whether it has no lone surrogates, which stand for bytes that are not UTF-8."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def from_url(text: str) -> Query:
    if not _is_unicode(text):
        raise SteptimeError(f"A query is text in UTF-8; found {text!r}.")
    plain: dict[str, str] = {}
    by: list[str] = []
    where: list[tuple[str, str]] = []
    series: list[tuple[str, Where]] = []
    for key, value in parse_qsl(text.lstrip("?"), keep_blank_values=True):
        if key in PLAIN:
            plain[key] = value
        elif key == "by":
            by += [name for name in value.split(",") if name]
        elif key == "s":
            name, _, filters = value.partition("|")
            pairs = parse_qsl(filters, keep_blank_values=True)
            series.append((name, group_conditions(pairs)))
        else:
            where.append((key, value))
    # Before the query is made, which knows no such metric.
    if plain.get("y") == "efficiency":
        plain = {"x": "devices", **plain, **EFFICIENCY}
    return Query(
        **plain,
        by=tuple(dict.fromkeys(by)),
        where=group_conditions(where),
        series=tuple(series),
    )


def group_conditions(pairs: list[tuple[str, str]]) -> Where:
    """The values of each key together, each value once."""
    conditions: dict[str, list[str]] = {}
    for key, value in pairs:
        conditions.setdefault(key, []).append(_normalise(key, value))
    return tuple((key, tuple(dict.fromkeys(values))) for key, values in conditions.items())


def _normalise(key: str, value: str) -> str:
    """Gives a number one spelling, 64 and not 64.0, so that one URL is one query."""
    dimension = DIMENSIONS.get(key.removeprefix("!"))
    if dimension is None or not dimension.number:
        return value
    try:
        number = float(value)
    except ValueError:
        # A range, or text that the query refuses later.
        return value
    text = format_value(number)
    return text if float(text) == number else value


def check_conditions(where: Where) -> None:
    for key, values in where:
        if _dimension(key.removeprefix("!")).number:
            for value in values:
                bounds(value)


def describe_condition(key: str, *values: str) -> str:
    """A condition in words, with its label if the value alone would be unclear."""
    name = key.removeprefix("!")
    text = " or ".join(values)
    if DIMENSIONS[name].number or name in ALONE:
        text = f"{DIMENSIONS[name].label.lower()} {text}"
    return f"not {text}" if key != name else text


def bounds(text: str) -> tuple[float | None, float | None]:
    """`8..64`, `8..`, `..64`; one number is its own range."""
    low, dots, high = text.partition("..")
    if not dots:
        high = low
    try:
        # Without dots an empty text is no number; with them it leaves that side open.
        lowest = float(low) if low or not dots else None
        highest = float(high) if high or not dots else None
    except ValueError:
        raise SteptimeError(f"Expected a number or a range low..high, found {text!r}.") from None
    return lowest, highest


def _is_moment(text: str) -> bool:
    """Whether this is an ISO 8601 moment, or the beginning of one."""
    if not MOMENT.fullmatch(text):
        return False
    rest = "0001-01-01T00:00:00"[len(text) :]
    try:
        datetime.fromisoformat(text + rest)
    except ValueError:
        return False
    return True


def _dimension(name: str) -> Dimension:
    if name not in DIMENSIONS:
        raise unknown("dimension", name, DIMENSIONS)
    return DIMENSIONS[name]
