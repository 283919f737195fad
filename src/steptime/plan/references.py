"""Resolve `${…}` in a plan: a name, an expression, `env:NAME` or `machine:NAME`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from steptime.core.errors import SteptimeError, unknown
from steptime.plan.expression import LONGEST, evaluate
from steptime.plan.parse import Value, line_prefix

REFERENCE = re.compile(r"\$\{([^{}]+)\}")
# env:NAME or machine:NAME, perhaps with a default: env:NAME:-default.
OUTSIDE = re.compile(r"(env|machine):([A-Za-z_][\w-]*)(?::-(.*))?", re.DOTALL)
INTEGER = re.compile(r"[+-]?\d+")
# Far more than any setting takes; int() refuses more than 4,300.
LONGEST_INTEGER = 1000
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


def parse_scalar(text: str) -> int | float | str:
    """Text from outside the file has no quotes: what reads as a number is one."""
    text = text.strip()
    if INTEGER.fullmatch(text):
        if len(text) > LONGEST_INTEGER:
            raise SteptimeError(f"No setting takes a number of {len(text):,} digits.")
        return int(text)
    return float(text) if NUMBER.fullmatch(text) else text


@dataclass(frozen=True)
class Outside:
    """What a plan may ask of the world around it."""

    environment: Mapping[str, str] = field(default_factory=dict)
    machine: Mapping[str, str] = field(default_factory=dict)

    def find(self, source: str, name: str, default: str | None, line: int) -> str:
        values = self.environment if source == "env" else self.machine
        value = values.get(name, default)
        if value is not None:
            return value
        if source == "machine":
            raise unknown("fact of the machine", name, self.machine, where=line_prefix(line))
        advice = f"Set it, or write ${{env:{name}:-default}}."
        raise SteptimeError(
            f"{line_prefix(line)}The environment variable {name!r} is not set. {advice}"
        )


@dataclass(frozen=True)
class Scope:
    """The names of one point of the space. A name that refers to itself is refused."""

    values: Mapping[str, Value]
    outside: Outside
    # Each name is computed once.
    _resolved: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def value(self, name: str, trail: tuple[str, ...] = (), line: int = 0) -> Any:
        """`trail` has the names whose values are being computed, and which lead to this one."""
        if name in trail:
            loop = " → ".join((*trail, name))
            raise SteptimeError(f"{line_prefix(line)}{name!r} refers to itself: {loop}.")
        if name not in self.values:
            raise unknown("name", name, self.values, where=line_prefix(line))
        if name not in self._resolved:
            self._resolved[name] = self.resolve(self.values[name], (*trail, name))
        return self._resolved[name]

    def resolve(self, value: Value, trail: tuple[str, ...] = ()) -> Any:
        """A text that is a single reference takes the type of what it refers to."""
        raw = value.raw
        if isinstance(raw, dict):
            inner_values = {key: Value(inner, value.line) for key, inner in raw.items()}
            return {key: self.resolve(inner, trail) for key, inner in inner_values.items()}
        if not isinstance(raw, str) or "${" not in raw:
            return raw
        reference = REFERENCE.fullmatch(raw)
        if reference:
            return self._resolve_alone(reference[1].strip(), trail, value.line)
        # What the pattern leaves over is not closed, or is nested.
        if "${" in REFERENCE.sub("", raw):
            raise SteptimeError(
                f"{line_prefix(value.line)}A reference is ${{name}} or ${{env:NAME}}, "
                f"found {raw!r}."
            )
        return self._fill_in(value, trail)

    def resolve_list(self, value: Value) -> list[Value]:
        """One value or several, each with its line."""
        resolved = self.resolve(value)
        elements = resolved if isinstance(resolved, list) else [resolved]
        return [
            element if isinstance(element, Value) else Value(element, value.line)
            for element in elements
        ]

    def _fill_in(self, value: Value, trail: tuple[str, ...]) -> str:
        """A text that contains references among other characters."""
        where = line_prefix(value.line)

        def replacement(reference: re.Match[str]) -> str:
            resolved = self._resolve(reference[1].strip(), trail, value.line)
            if isinstance(resolved, list | dict):
                raise SteptimeError(
                    f"{where}{reference[0]} is a list, which cannot stand inside a text."
                )
            return str(resolved)

        text = REFERENCE.sub(replacement, value.raw)
        if len(text) > LONGEST:
            raise SteptimeError(f"{where}{value.raw!r} becomes longer than {LONGEST} characters.")
        return text

    def _resolve_alone(self, content: str, trail: tuple[str, ...], line: int) -> Any:
        """Text from outside that stands alone may be a number: a batch size can come from there."""
        resolved = self._resolve(content, trail, line)
        return parse_scalar(resolved) if OUTSIDE.fullmatch(content) else resolved

    def _resolve(self, content: str, trail: tuple[str, ...], line: int) -> Any:
        outside = OUTSIDE.fullmatch(content)
        if outside:
            return self.outside.find(outside[1], outside[2], outside[3], line)
        if content.isidentifier():
            return self.value(content, trail, line)
        if ":-" in content:
            raise SteptimeError(
                f"{line_prefix(line)}Only env and machine references take a default, "
                f"found '${{{content}}}'."
            )

        def look_up(name: str) -> Any:
            resolved = self.value(name, trail, line)
            if _is_list_of_file(resolved):
                return [self.resolve(element, trail) for element in resolved]
            return resolved

        return evaluate(content, look_up, self._functions(line), line_prefix(line))

    def _functions(self, line: int) -> dict[str, Callable[..., Any]]:
        def env(name: str, default: Any = None) -> Any:
            default_text = None if default is None else str(default)
            return parse_scalar(self.outside.find("env", name, default_text, line))

        def machine(name: str) -> Any:
            return parse_scalar(self.outside.find("machine", name, None, line))

        return {"env": env, "machine": machine}


def _is_list_of_file(value: Any) -> bool:
    """Its elements know their lines and may be references; those of a computed list do not."""
    return isinstance(value, list) and all(isinstance(element, Value) for element in value)
