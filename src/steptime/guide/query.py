"""One question as an address, a command line and a test write it: `x=model&by=precision&phase=training`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any
from urllib.parse import parse_qsl, urlencode

from steptime.core.errors import SteptimeError, unknown
from steptime.guide.catalogue import DIMENSIONS, METRICS
from steptime.guide.rows import Row

CHOICES = {"log": ("", "x", "y", "xy")}


@dataclass(frozen=True)
class Query:
    """The same key repeated is *or*, different keys are *and*, `!key` excludes, `key=low..high` is a range."""

    y: str = "throughput"
    x: str = "model"
    by: tuple[str, ...] = ()  # one colour for each combination
    split: str = ""  # one small chart for each value
    log: str = ""
    where: tuple[tuple[str, tuple[str, ...]], ...] = field(default=())

    def __post_init__(self) -> None:
        for name in (self.y, self.x):
            if name not in METRICS and (name == self.y or name not in DIMENSIONS):
                raise unknown("metric" if name == self.y else "axis", name, [*METRICS, *DIMENSIONS])
        for name in (*self.by, *filter(None, [self.split]), *(key.lstrip("!") for key, _ in self.where)):
            if name not in DIMENSIONS:
                raise unknown("dimension", name, DIMENSIONS)
        if self.log not in CHOICES["log"]:
            raise unknown("axis for log", self.log, CHOICES["log"][1:])

    def of(self, rows: Iterable[Row]) -> list[Row]:
        """Those that it asks for and that have both of its values."""
        return [row for row in rows if self._wants(row) and row.get(self.y) is not None and row.get(self.x) is not None]

    def _wants(self, row: Row) -> bool:
        return all(_is_one_of(row.get(key.lstrip("!")), values) != key.startswith("!") for key, values in self.where)

    def to_url(self) -> str:
        """Without what is a default anyway."""
        plain = [(name, getattr(self, name)) for name in ("y", "x", "split", "log")]
        default = {f.name: f.default for f in fields(self)}
        pairs = [(name, value) for name, value in plain if value != default[name]]
        pairs += [("by", name) for name in self.by]
        return urlencode([*pairs, *((key, value) for key, values in self.where for value in values)])


def from_url(text: str) -> Query:
    plain: dict[str, str] = {}
    by: list[str] = []
    where: dict[str, list[str]] = {}
    for key, value in parse_qsl(text.lstrip("?"), keep_blank_values=True):
        if key in ("y", "x", "split", "log"):
            plain[key] = value
        elif key == "by":
            by += [name for name in value.split(",") if name]
        else:
            where.setdefault(key, []).append(value)
    return Query(**plain, by=tuple(by), where=tuple((key, tuple(values)) for key, values in where.items()))


def _is_one_of(value: Any, wanted: tuple[str, ...]) -> bool:
    return any(_within(value, text) if ".." in text else str(value) == text for text in wanted)


def _within(value: Any, text: str) -> bool:
    low, _, high = text.partition("..")
    try:
        number = float(value)
        return (not low or float(low) <= number) and (not high or number <= float(high))
    except (TypeError, ValueError):
        raise SteptimeError(f"A range needs numbers: {text!r} can not be asked of {value!r}.") from None
