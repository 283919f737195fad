"""`${name}`, `${env:NAME}` and `${machine:NAME}` inside a plan: looks them up, refuses loops and missing ones."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from steptime.core.errors import SteptimeError, unknown
from steptime.core.plan_text import Value, at

REFERENCE = re.compile(r"\$\{(?:(env|machine):)?([A-Za-z_][\w-]*)(?::-([^}]*))?\}")

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


def typed(word: str) -> int | float | str:
    """Words from outside the file have no quotes: what reads as a number is one."""
    text = word.strip()
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    return float(text) if NUMBER.fullmatch(text) else text


@dataclass(frozen=True)
class Outside:
    """What a plan may ask of the world around it."""

    environment: Mapping[str, str] = field(default_factory=dict)
    machine: Mapping[str, str] = field(default_factory=dict)

    def find(self, source: str, name: str, default: str | None, line: int) -> str:
        found = (self.environment if source == "env" else self.machine).get(name, default)
        if found is None and source == "env":
            advice = f"Set it, or write ${{env:{name}:-default}}."
            raise SteptimeError(f"{at(line)}The environment variable {name!r} is not set. {advice}")
        if found is None:
            raise unknown("fact of the machine", name, self.machine, where=at(line))
        return found


@dataclass(frozen=True)
class Scope:
    """The names of one point of the space."""

    values: Mapping[str, Value]
    outside: Outside

    def value(self, name: str, trail: tuple[str, ...] = (), line: int = 0) -> Any:
        if name in trail:
            raise SteptimeError(f"{at(line)}{name!r} refers to itself: {' → '.join((*trail, name))}.")
        if name not in self.values:
            raise unknown("name", name, self.values, where=at(line))
        return self.resolve(self.values[name], (*trail, name))

    def resolve(self, value: Value, trail: tuple[str, ...] = ()) -> Any:
        """A text that is one reference takes the type of what it names; inside a longer text it is written out."""
        if not isinstance(value.raw, str) or "${" not in value.raw:
            return value.raw
        if whole := REFERENCE.fullmatch(value.raw):
            found = self._look_up(whole, trail, value.line)
            return typed(found) if whole[1] else found  # so that a batch size can come from outside
        if "${" in REFERENCE.sub("", value.raw):
            raise SteptimeError(f"{at(value.line)}A reference is ${{name}} or ${{env:NAME}}, found {value.raw!r}.")
        return REFERENCE.sub(lambda found: str(self._look_up(found, trail, value.line)), value.raw)

    def _look_up(self, found: re.Match[str], trail: tuple[str, ...], line: int) -> Any:
        source, name, default = found.groups()
        if source:
            return self.outside.find(source, name, default, line)
        if default is not None:
            raise SteptimeError(f"{at(line)}Only env and machine references take a default, found {found[0]!r}.")
        return self.value(name, trail, line)
