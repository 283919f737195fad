"""Every word of a plan, checked where it stands, also in rules that apply to nothing. Computes no value."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from steptime.core.case import CHOICES, SETTINGS, Case
from steptime.core.errors import SteptimeError, unknown
from steptime.plan import expression
from steptime.plan.parse import Document, Rule, Value, at
from steptime.plan.references import OUTSIDE, REFERENCE

DEFAULTS = {f.name: f.default for f in fields(Case) if f.name != "workload"}
MEASURES = ("at_least", "at_most", "matches")
Known = Mapping[str, Iterable[str]]
Entries = Mapping[str, Value]


def check_words(document: Document, pinned: Entries, known: Known) -> None:
    _Words(document, known).check(pinned)


def check_value(name: str, value: Value, known: Known) -> None:
    """One value of a setting. References are checked when they are resolved."""
    found, where = value.raw, at(value.line)
    if name not in SETTINGS or (isinstance(found, str) and "${" in found):
        return
    if isinstance(found, list):
        raise SteptimeError(
            f"{where}{name} takes one value here, found a list: a list belongs into [sweep]."
        )
    if isinstance(found, dict):
        raise SteptimeError(f"{where}{name} must be one value, found a table ({', '.join(found)}).")
    if name == "workload" and str(found).endswith(".py"):
        raise SteptimeError(f"{where}{found} is a file: name the network in it too, {found}:NAME.")
    own_file = name == "workload" and ".py:" in str(found)
    words = CHOICES.get(name) or known.get(name)
    if words is not None and found not in words and not own_file:
        raise unknown(name, found, words, where=where)
    _check_kind(name, found, where)


def _check_kind(name: str, found: Any, where: str) -> None:
    kind = type(DEFAULTS.get(name, ""))
    if type(found) is not kind:
        wanted = "a whole number" if kind is int else "a text in quotes"
        hint = " (// divides to one)" if kind is int and type(found) is float else ""
        raise SteptimeError(f"{where}{name} must be {wanted}{hint}, found {found!r}.")
    try:
        Case.from_dict({"workload": "any", name: found})
    except SteptimeError as problem:
        raise SteptimeError(f"{where}{problem}") from None


class _Words:
    def __init__(self, document: Document, known: Known) -> None:
        self.document, self.known = document, known
        self.variables, self.constants = document.tables["variables"], document.tables["constants"]
        self.sweep = document.tables["sweep"]
        self.rules = [rule for rules in document.rules.values() for rule in rules]
        self.names = (*SETTINGS, *self.variables)
        self.groups: dict[str, int] = {}  # of patterns in `matches`, with their lines

    def check(self, pinned: Entries) -> None:
        self._check_tables()
        self._check_part(self.constants)
        self._check_part(self.sweep, lists=True)
        self._check_part(pinned, lists=True)
        for table in self.document.tables.values():
            self._check_references(table.values())
        for rule in self.rules:
            self._check_rule(rule)

    def _check_rule(self, rule: Rule) -> None:
        before = set(self.groups)
        for name, value in rule.when.items():
            self._check_name(name, value)
            for element in elements(value):
                self._check_condition(name, element)
        self._check_references([*rule.when.values(), *([rule.computed] if rule.computed else [])])
        own = (
            set(self.groups) - before
        )  # known in this rule alone: elsewhere it may not have applied
        for part in (rule.set, *rule.cases):
            self._check_part(part)
            self._check_references(part.values(), own)
        self._check_part(rule.sweep, lists=True)
        self._check_references(rule.sweep.values(), own)

    def _check_tables(self) -> None:
        for name, value in self.variables.items():
            if name in SETTINGS:
                raise SteptimeError(
                    f"{at(value.line)}{name!r} is a setting: write it in [constants] or [sweep]."
                )
            if not name.isidentifier() or keyword.iskeyword(name):
                raise SteptimeError(
                    f"{at(value.line)}{name!r} cannot be a variable: use letters, digits and _ alone."
                )
        for name, value in self.sweep.items():
            if name in self.constants:
                raise SteptimeError(
                    f"{at(value.line)}{name!r} is in [constants] and in [sweep]: remove it from one of them."
                )

    def _check_part(self, part: Entries, *, lists: bool = False) -> None:
        for name, value in part.items():
            self._check_name(name, value)
            for element in elements(value) if lists else [value]:
                check_value(name, element, self.known)

    def _check_name(self, name: str, value: Value) -> None:
        if name not in self.names:
            raise unknown("setting", name, self.names, where=at(value.line))
        if name == "trial":
            raise SteptimeError(
                f"{at(value.line)}trial counts the repeats: write repeats = N at the top instead."
            )

    def _check_condition(self, name: str, value: Value) -> None:
        if not isinstance(value.raw, dict):
            check_value(name, value, self.known)
            return
        for word, bound in value.raw.items():
            if word not in MEASURES:
                raise unknown("measure", word, MEASURES, where=at(value.line))
            if word == "matches":
                self._check_pattern(bound, value.line)
            elif type(bound) is not int or (name in DEFAULTS and type(DEFAULTS[name]) is not int):
                raise SteptimeError(
                    f"{at(value.line)}{word} is for whole numbers, found {name} {word} {bound!r}."
                )

    def _check_pattern(self, pattern: Any, line: int) -> None:
        try:
            groups = re.compile(pattern).groupindex
        except (re.error, TypeError, OverflowError) as problem:
            raise SteptimeError(
                f"{at(line)}matches needs a regular expression: {problem}; found {pattern!r}."
            ) from None
        for group in groups:
            if group in self.names or group in self.groups:
                taken = (
                    f"on line {self.groups[group]}"
                    if group in self.groups
                    else "a setting or variable"
                )
                raise SteptimeError(
                    f"{at(line)}The group {group!r} is already {taken}: give it another name."
                )
            self.groups[group] = line

    def _check_references(self, values: Iterable[Value], groups: Iterable[str] = ()) -> None:
        """Names inside `${…}`. What is no reference at all is refused when it is resolved."""
        texts = [
            element
            for value in values
            for element in elements(value)
            if isinstance(element.raw, str)
        ]
        found = [
            (words.strip(), at(text.line))
            for text in texts
            for words in REFERENCE.findall(text.raw)
        ]
        known = (*self.names, *groups)
        for words, where in found:
            if OUTSIDE.fullmatch(words) or ":-" in words:
                continue
            for name in expression.check(words, ("env", "machine"), where):
                if name not in known:
                    raise unknown("name", name, known, where=where)


def elements(value: Value) -> list[Value]:
    return value.raw if isinstance(value.raw, list) else [value]
