"""`${…}` inside a plan: a name, a computation, `env:NAME` or `machine:NAME`. Refuses loops and missing ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from steptime.core.errors import SteptimeError, unknown
from steptime.plan.expression import LONGEST, evaluate
from steptime.plan.parse import Value, at

REFERENCE = re.compile(r"\$\{([^{}]+)\}")
OUTSIDE = re.compile(r"(env|machine):([A-Za-z_][\w-]*)(?::-(.*))?", re.DOTALL)
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
    _known: dict[str, Any] = field(
        default_factory=dict, repr=False, compare=False
    )  # each name is computed once

    def value(self, name: str, trail: tuple[str, ...] = (), line: int = 0) -> Any:
        if name in trail:
            raise SteptimeError(
                f"{at(line)}{name!r} refers to itself: {' → '.join((*trail, name))}."
            )
        if name not in self.values:
            raise unknown("name", name, self.values, where=at(line))
        if name not in self._known:
            self._known[name] = self.resolve(self.values[name], (*trail, name))
        return self._known[name]

    def resolve(self, value: Value, trail: tuple[str, ...] = ()) -> Any:
        """A text that is one reference takes the type of what it names; inside a longer text it is written out."""
        if isinstance(value.raw, dict):
            return {
                key: self.resolve(Value(inner, value.line), trail)
                for key, inner in value.raw.items()
            }
        if not isinstance(value.raw, str) or "${" not in value.raw:
            return value.raw
        if whole := REFERENCE.fullmatch(value.raw):
            return self._found(whole[1], trail, value.line, whole=True)
        if "${" in REFERENCE.sub("", value.raw):
            raise SteptimeError(
                f"{at(value.line)}A reference is ${{name}} or ${{env:NAME}}, found {value.raw!r}."
            )
        return self._written(value, trail)

    def listed(self, value: Value) -> list[Value]:
        """One value or several, each with its line."""
        found = self.resolve(value)
        elements = found if isinstance(found, list) else [found]
        return [
            element if isinstance(element, Value) else Value(element, value.line)
            for element in elements
        ]

    def _written(self, value: Value, trail: tuple[str, ...]) -> str:
        def text(part: re.Match[str]) -> str:
            found = self._found(part[1], trail, value.line)
            if isinstance(found, list | dict):
                raise SteptimeError(
                    f"{at(value.line)}{part[0]} is a list, which cannot stand inside a text."
                )
            return str(found)

        written = REFERENCE.sub(text, value.raw)
        if len(written) > LONGEST:
            raise SteptimeError(
                f"{at(value.line)}{value.raw!r} becomes longer than {LONGEST} letters."
            )
        return written

    def _found(self, words: str, trail: tuple[str, ...], line: int, *, whole: bool = False) -> Any:
        """What comes from outside stays as it is written there, unless it stands alone: a batch size can come so."""
        words = words.strip()
        if outside := OUTSIDE.fullmatch(words):
            source, name, default = outside.groups()
            found = self.outside.find(source, name, default, line)
            return typed(found) if whole else found
        if words.isidentifier():
            return self.value(words, trail, line)
        if ":-" in words:
            raise SteptimeError(
                f"{at(line)}Only env and machine references take a default, found '${{{words}}}'."
            )

        def known(name: str) -> Any:
            found = self.value(name, trail, line)
            return [self.resolve(inner, trail) for inner in found] if _is_written(found) else found

        return evaluate(words, known, self._functions(line), at(line))

    def _functions(self, line: int) -> dict[str, Callable[..., Any]]:
        def env(name: str, default: Any = None) -> Any:
            return typed(
                self.outside.find("env", name, None if default is None else str(default), line)
            )

        return {
            "env": env,
            "machine": lambda name: typed(self.outside.find("machine", name, None, line)),
        }


def _is_written(found: Any) -> bool:
    """A list of the file: its elements know their lines, and may be references."""
    return isinstance(found, list) and all(isinstance(element, Value) for element in found)
