"""One question as an address, a command line and a test write it: `x=model&by=precision&phase=training`."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from datetime import datetime
from urllib.parse import parse_qsl, urlencode

from steptime.core.errors import SteptimeError, unknown
from steptime.index.catalogue import ALONE, DIMENSIONS, METRICS, Dimension, word

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
EFFICIENCY = {"y": "throughput_per_device", "rel": f"devices:{FEWEST}"}
"""What y=efficiency is short for: scaling, weak or strong, is how much of its speed a processing unit keeps."""
MOMENT = re.compile(r"\d{4}(-\d\d(-\d\d(T\d\d(:\d\d(:\d\d)?)?)?)?)?", re.ASCII)


@dataclass(frozen=True)
class Query:
    """The same key repeated is *or*, different keys are *and*, `!key` excludes, `key=low..high` is a range of numbers.
    Unless asked for, failed results and those that cannot be true are left out."""

    y: str = "throughput"
    x: str = "model"
    by: tuple[str, ...] = ()  # one colour or shape for each value
    split: str = ""  # one small chart for each value
    agg: str = "best"  # which of the runs of a point speaks for it, or their mean or median
    err: str = "interval"
    mark: str = "point"  # bars where they have a base: not on a log axis, nor against a metric
    log: str = ""
    scaling: str = ""  # what `batch` means: of one device (weak) or of all together (strong)
    batch: str = ""
    rel: str = ""  # DIMENSION:VALUE, the series that every value is divided by; `devices:fewest` takes the fewest
    since: str = ""  # the beginning of an ISO 8601 moment: a year, a month, a day, …
    until: str = ""
    where: Where = ()
    series: tuple[
        tuple[str, Where], ...
    ] = ()  # named ones, each with filters of its own beside the shared ones

    def __post_init__(self) -> None:
        if self.y not in METRICS:
            raise unknown("metric", self.y, METRICS)
        if self.x not in METRICS and self.x not in DIMENSIONS:
            raise unknown("axis", self.x, [*METRICS, *DIMENSIONS])
        for name, words in CHOICES.items():
            if getattr(self, name) not in words:
                raise unknown(f"word for {name}", getattr(self, name), filter(None, words))
        for name in (*self.by, *filter(None, [self.split])):
            _known(name)
        for conditions in (self.where, *(own for _, own in self.series)):
            check(conditions)
        for moment in filter(None, (self.since, self.until)):
            if not _is_moment(moment):
                raise SteptimeError(
                    f"since and until are days, as 2026-01-31, or 2026-01-31T12:00; found {moment!r}."
                )
        self._check_relations()

    def _check_relations(self) -> None:
        if bool(self.scaling) != bool(self.batch) or (self.batch and not self.batch.isdecimal()):
            raise SteptimeError(
                f"scaling and batch go together, as in scaling=weak&batch=128; found {self.to_url()!r}."
            )
        name, colon, value = self.rel.partition(":")
        if self.rel and (not colon or name not in (*self.by, self.x) or self.x in METRICS):
            raise SteptimeError(
                "rel is DIMENSION:VALUE of x or by, and x a dimension, as in by=framework&rel=framework:pytorch; "
                f"found {self.rel!r}."
            )
        if value == FEWEST and not DIMENSIONS[name].number:
            raise SteptimeError(
                f"{FEWEST} is said of numbers, as in x=devices&rel=devices:{FEWEST}; not of {name}."
            )

    @property
    def groups(self) -> tuple[str, ...]:
        """What one point is made of: these dimensions have one value in it."""
        names = (self.split, self.x, *self.by)
        return tuple(dict.fromkeys(name for name in names if name in DIMENSIONS))

    @property
    def bars(self) -> bool:
        return self.mark == "bar" and "y" not in self.log and self.x in DIMENSIONS

    @property
    def conditions(self) -> Where:
        """All of them, with what is left out unless asked for."""
        return self._with(())

    @property
    def parts(self) -> tuple[tuple[str, Where], ...]:
        """Each named series with all its conditions; where there is none the question itself, without a name."""
        return tuple((name, self._with(own)) for name, own in self.series) or (
            ("", self.conditions),
        )

    def _with(self, own: Where) -> Where:
        where = (*self.where, *own)
        named = {key.lstrip("!") for key, _ in where}
        usual = (("status", ("ok",)), ("plausible", ("yes",)))
        size = ((BATCH[self.scaling], (self.batch,)),) if self.scaling else ()
        return (*where, *size, *(pair for pair in usual if pair[0] not in named))

    def to_url(self) -> str:
        """Without what is a default anyway."""
        default = {f.name: f.default for f in fields(self)}
        pairs = [
            (name, getattr(self, name)) for name in PLAIN if getattr(self, name) != default[name]
        ]
        pairs += [("by", name) for name in self.by]
        pairs += [(key, value) for key, values in self.where for value in values]
        named = [
            ("s", f"{name}|{urlencode([(k, v) for k, vs in own for v in vs])}")
            for name, own in self.series
        ]
        return urlencode([*pairs, *named])


def from_url(text: str) -> Query:
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
            name, _, own = value.partition("|")
            series.append((name, gathered(parse_qsl(own, keep_blank_values=True))))
        else:
            where.append((key, value))
    if plain.get("y") == "efficiency":
        plain = {"x": "devices", **plain, **EFFICIENCY}
    return Query(**plain, by=tuple(dict.fromkeys(by)), where=gathered(where), series=tuple(series))


def gathered(pairs: list[tuple[str, str]]) -> Where:
    found: dict[str, list[str]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(_spelled(key, value))
    return tuple((key, tuple(dict.fromkeys(values))) for key, values in found.items())


def _spelled(key: str, value: str) -> str:
    """A number has one spelling, so that one address is one question: 64, not 64.0."""
    known = DIMENSIONS.get(key.removeprefix("!"))
    if known is None or not known.number:
        return value
    try:
        number = float(value)
    except ValueError:  # a range, or what is refused later
        return value
    return word(number) if float(word(number)) == number else value


def check(where: Where) -> None:
    for key, values in where:
        if _known(key.removeprefix("!")).number:
            for value in values:
                bounds(value)


def said(key: str, *values: str) -> str:
    """A condition in words; what would be a riddle without its name has it."""
    name = key.removeprefix("!")
    label = f"{DIMENSIONS[name].label.lower()} " if DIMENSIONS[name].number or name in ALONE else ""
    return f"{'not ' if key != name else ''}{label}{' or '.join(values)}"


def bounds(text: str) -> tuple[float | None, float | None]:
    """`8..64`, `8..`, `..64`; one number is its own range."""
    low, dots, high = text.partition("..")
    try:
        found = (
            float(low) if low else None,
            float(high if dots else low) if high or not dots else None,
        )
    except ValueError:
        raise SteptimeError(
            f"A number or a range low..high is needed here, found {text!r}."
        ) from None
    return found


def _is_moment(text: str) -> bool:
    """Or the beginning of one: the rest is filled up."""
    try:
        return bool(
            MOMENT.fullmatch(text)
            and datetime.fromisoformat(text + "0001-01-01T00:00:00"[len(text) :])
        )
    except ValueError:
        return False


def _known(name: str) -> Dimension:
    if name not in DIMENSIONS:
        raise unknown("dimension", name, DIMENSIONS)
    return DIMENSIONS[name]
