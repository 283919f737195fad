"""Kinds of values that a document may hold, and why a value is not of its kind.

Documents come from other machines and from damaged files, so nothing about them is taken for
granted. Names that a kind does not list may hold anything within the bounds: a later version may
have added them."""

from __future__ import annotations

import re
import reprlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

# What PostgreSQL's integer holds, and what an array of 64 bits holds with room for a sum.
MOST_COUNT = 2**31 - 1
MOST_NUMBER = 2**62
# No writer nests deeper than ten, and Python's own limit is a thousand.
MOST_DEPTH = 32
MOST_NAME = 4096
# The output of a failed process is the longest text.
MOST_TEXT = 1_000_000
DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)")
CONTROLS = re.compile(r"[\x00-\x1f\x7f]")
SURROGATES = re.compile(r"[\ud800-\udfff]")


class Kind(Protocol):
    def problem(self, value: Any, name: str) -> str:
        """What is wrong with the value of this name; empty if nothing is."""


@dataclass(frozen=True)
class Anything:
    """Any JSON that is not nested too deeply and that can be written down again."""

    def problem(self, value: Any, name: str) -> str:
        return _nested_problem(value, name, MOST_DEPTH)


@dataclass(frozen=True)
class Text:
    """`free` text may have line breaks and other control characters; a name has none."""

    most: int = MOST_NAME
    least: int = 0
    free: bool = False

    def problem(self, value: Any, name: str) -> str:
        if not isinstance(value, str):
            return must_be(name, "be text", value)
        if not self.least <= len(value) <= self.most:
            length = f"have {self.least} to {self.most:,} characters"
            return f"{name} must {length}, found {len(value):,}"
        if SURROGATES.search(value):
            return must_be(name, "have no half of a surrogate pair", value)
        if not self.free and CONTROLS.search(value):
            return must_be(name, "have no control characters", value)
        return ""


@dataclass(frozen=True)
class Date:
    """ISO 8601 with the time and its zone."""

    def problem(self, value: Any, name: str) -> str:
        requirement = "be a date such as 2026-01-31T12:00:00+00:00"
        if not isinstance(value, str) or not DATE.fullmatch(value):
            return must_be(name, requirement, value)
        try:
            datetime.fromisoformat(value)
        except ValueError:
            return must_be(name, requirement, value)
        return ""


@dataclass(frozen=True)
class Flag:
    def problem(self, value: Any, name: str) -> str:
        return "" if isinstance(value, bool) else must_be(name, "be true or false", value)


@dataclass(frozen=True)
class Whole:
    least: int = -MOST_NUMBER
    most: int = MOST_NUMBER

    def problem(self, value: Any, name: str) -> str:
        if type(value) is not int or value < self.least:
            return must_be(name, f"be a whole number of at least {self.least}", value)
        if value > self.most:
            return must_be(name, f"be a whole number of at most {self.most}", value)
        return ""


@dataclass(frozen=True)
class Number:
    least: float = -sys.float_info.max

    def problem(self, value: Any, name: str) -> str:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and self.least <= value <= sys.float_info.max:
            return ""
        if self.least == -sys.float_info.max:
            return must_be(name, "be a finite number", value)
        return must_be(name, f"be a finite number of at least {self.least:g}", value)


@dataclass(frozen=True)
class Choice:
    choices: Sequence[str]

    def problem(self, value: Any, name: str) -> str:
        if isinstance(value, str) and value in self.choices:
            return ""
        return must_be(name, f"be one of {', '.join(self.choices)}", value)


@dataclass(frozen=True)
class Maybe:
    """Of this kind, or null, which stands for unknown."""

    kind: Kind

    def problem(self, value: Any, name: str) -> str:
        return "" if value is None else self.kind.problem(value, name)


@dataclass(frozen=True)
class Either:
    first: Kind
    second: Kind

    def problem(self, value: Any, name: str) -> str:
        if not self.first.problem(value, name):
            return ""
        return self.second.problem(value, name)


@dataclass(frozen=True)
class ListOf:
    kind: Kind
    least: int = 0
    most: int = 100_000_000

    def problem(self, value: Any, name: str) -> str:
        if not isinstance(value, list):
            return must_be(name, "be a list", value)
        if not self.least <= len(value) <= self.most:
            return f"{name} must have {self.least} to {self.most:,} items, found {len(value):,}"
        if isinstance(self.kind, Whole) and _are_whole(value, self.kind):
            return ""
        for number, item in enumerate(value):
            if problem := self.kind.problem(item, f"{name}[{number}]"):
                return problem
        return ""


@dataclass(frozen=True)
class Mapped:
    """An object whose values are all of one kind, under any names."""

    kind: Kind

    def problem(self, value: Any, name: str) -> str:
        if not isinstance(value, dict):
            return must_be(name, "be an object", value)
        for key, item in value.items():
            if problem := _key_problem(key, name) or self.kind.problem(item, f"{name}.{key}"):
                return problem
        return ""


@dataclass(frozen=True)
class Columns:
    """An object of lists, all of the same length."""

    kind: Kind

    def problem(self, value: Any, name: str) -> str:
        if problem := Mapped(ListOf(self.kind)).problem(value, name):
            return problem
        lengths = {len(column) for column in value.values()}
        return must_be(name, "have columns of one length", lengths) if len(lengths) > 1 else ""


@dataclass(frozen=True)
class Object:
    """An object with these names. Those that are not `required` may be missing."""

    kinds: Mapping[str, Kind]
    required: Sequence[str] = ()
    others: Kind = field(default_factory=Anything)

    def problem(self, value: Any, name: str) -> str:
        if not isinstance(value, dict):
            return must_be(name, "be an object", value)
        for key in self.required:
            if key not in value:
                return f"{name}.{key} is missing"
        for key, item in value.items():
            kind = self.kinds.get(key, self.others)
            if problem := _key_problem(key, name) or kind.problem(item, f"{name}.{key}"):
                return problem
        return ""


def must_be(name: str, requirement: str, value: Any) -> str:
    """`batch_size must be a whole number from 1 to 9, found 10`."""
    return f"{name} must {requirement}, found {reprlib.repr(value)}"


def _are_whole(values: list[int], kind: Whole) -> bool:
    """The same check for all at once: a measurement may have a million of them."""
    if not values:
        return True
    if set(map(type, values)) != {int}:
        return False
    return kind.least <= min(values) and max(values) <= kind.most


def _key_problem(key: str, name: str) -> str:
    return Text(most=MOST_NAME, free=True).problem(key, f"a name in {name}")


def _nested_problem(value: Any, name: str, depth: int) -> str:
    if depth == 0:
        return f"{name} must not be nested deeper than {MOST_DEPTH} levels"
    if isinstance(value, dict):
        for key, item in value.items():
            problem = _key_problem(key, name) or _nested_problem(item, f"{name}.{key}", depth - 1)
            if problem:
                return problem
    elif isinstance(value, list):
        for item in value:
            if problem := _nested_problem(item, f"{name}[]", depth - 1):
                return problem
    elif isinstance(value, str):
        return Text(most=MOST_TEXT, free=True).problem(value, name)
    elif type(value) is int:
        return Whole(-(2**63), 2**64 - 1).problem(value, name)
    return ""
