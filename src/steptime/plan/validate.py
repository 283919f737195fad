"""Check every name and value of a plan, also in rules that apply to nothing. Computes no value."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from steptime.core.case import CHOICES, SETTINGS, Case
from steptime.core.errors import SteptimeError, unknown
from steptime.plan import expression
from steptime.plan.parse import Document, Rule, Value, line_prefix
from steptime.plan.references import OUTSIDE, REFERENCE

DEFAULTS = {f.name: f.default for f in fields(Case) if f.name != "workload"}
MEASURES = ("at_least", "at_most", "matches")
Names = Mapping[str, Iterable[str]]
"""The names of the plugins, by setting: workloads and frameworks."""
Entries = Mapping[str, Value]


def check_document(document: Document, overrides: Entries, plugin_names: Names) -> None:
    """`overrides` are settings that win over the file: those of the command line."""
    _Checker(document, plugin_names).check(overrides)


def check_value(name: str, value: Value, plugin_names: Names) -> None:
    """One value of a setting. References are checked when they are resolved."""
    raw = value.raw
    where = line_prefix(value.line)
    if name not in SETTINGS or (isinstance(raw, str) and "${" in raw):
        return
    if isinstance(raw, list):
        raise SteptimeError(
            f"{where}{name} takes one value here, found a list: a list belongs into [sweep]."
        )
    if isinstance(raw, dict):
        raise SteptimeError(f"{where}{name} must be one value, found a table ({', '.join(raw)}).")
    if name == "workload" and str(raw).endswith(".py"):
        raise SteptimeError(f"{where}{raw} is a file: name the network in it too, {raw}:NAME.")
    # A network in the user's own file has no plugin name.
    is_user_file = name == "workload" and ".py:" in str(raw)
    choices = CHOICES.get(name) or plugin_names.get(name)
    if choices is not None and raw not in choices and not is_user_file:
        raise unknown(name, raw, choices, where=where)
    _check_type(name, raw, where)


def _check_type(name: str, raw: Any, where: str) -> None:
    expected_type = type(DEFAULTS.get(name, ""))
    if type(raw) is not expected_type:
        expected = "a text in quotes"
        if expected_type is int:
            expected = "a whole number"
            if type(raw) is float:
                expected += " (// divides to one)"
        raise SteptimeError(f"{where}{name} must be {expected}, found {raw!r}.")
    # The case itself knows the range of each number.
    try:
        Case.from_dict({"workload": "any", name: raw})
    except SteptimeError as problem:
        raise SteptimeError(f"{where}{problem}") from None


class _Checker:
    def __init__(self, document: Document, plugin_names: Names) -> None:
        self.document = document
        self.plugin_names = plugin_names
        self.variables = document.tables["variables"]
        self.constants = document.tables["constants"]
        self.sweep = document.tables["sweep"]
        self.names = (*SETTINGS, *self.variables)
        # Named groups of the patterns in `matches`, with their lines.
        self.groups: dict[str, int] = {}

    def check(self, overrides: Entries) -> None:
        self._check_tables()
        self._check_entries(self.constants)
        self._check_lists(self.sweep)
        self._check_lists(overrides)
        for table in self.document.tables.values():
            self._check_references(table.values())
        for rules in self.document.rules.values():
            for rule in rules:
                self._check_rule(rule)

    def _check_rule(self, rule: Rule) -> None:
        groups_before = set(self.groups)
        for name, value in rule.when.items():
            self._check_name(name, value)
            for element in elements(value):
                self._check_condition(name, element)
        self._check_references(rule.when.values())
        if rule.condition:
            self._check_references([rule.condition])
        # Only this rule may use them: for other rules the pattern may not have matched.
        groups = set(self.groups) - groups_before
        for entries in (rule.set, *rule.cases):
            self._check_entries(entries)
            self._check_references(entries.values(), groups)
        self._check_lists(rule.sweep)
        self._check_references(rule.sweep.values(), groups)

    def _check_tables(self) -> None:
        for name, value in self.variables.items():
            where = line_prefix(value.line)
            if name in SETTINGS:
                raise SteptimeError(
                    f"{where}{name!r} is a setting: write it in [constants] or [sweep]."
                )
            if not name.isidentifier() or keyword.iskeyword(name):
                raise SteptimeError(
                    f"{where}{name!r} cannot be a variable: use letters, digits and _ alone."
                )
        for name, value in self.sweep.items():
            if name in self.constants:
                raise SteptimeError(
                    f"{line_prefix(value.line)}{name!r} is in [constants] and in [sweep]: "
                    "remove it from one of them."
                )

    def _check_entries(self, entries: Entries) -> None:
        for name, value in entries.items():
            self._check_name(name, value)
            check_value(name, value, self.plugin_names)

    def _check_lists(self, entries: Entries) -> None:
        for name, value in entries.items():
            self._check_name(name, value)
            for element in elements(value):
                check_value(name, element, self.plugin_names)

    def _check_name(self, name: str, value: Value) -> None:
        where = line_prefix(value.line)
        if name not in self.names:
            raise unknown("setting", name, self.names, where=where)
        if name == "trial":
            raise SteptimeError(
                f"{where}trial counts the repeats: write repeats = N at the top instead."
            )

    def _check_condition(self, name: str, value: Value) -> None:
        if not isinstance(value.raw, dict):
            check_value(name, value, self.plugin_names)
            return
        where = line_prefix(value.line)
        is_text = name in DEFAULTS and type(DEFAULTS[name]) is not int
        for measure, bound in value.raw.items():
            if measure not in MEASURES:
                raise unknown("measure", measure, MEASURES, where=where)
            if measure == "matches":
                self._check_pattern(bound, value.line)
            elif type(bound) is not int or is_text:
                raise SteptimeError(
                    f"{where}{measure} is for whole numbers, found {name} {measure} {bound!r}."
                )

    def _check_pattern(self, pattern: Any, line: int) -> None:
        where = line_prefix(line)
        try:
            groups = re.compile(pattern).groupindex
        except (re.error, TypeError, OverflowError) as problem:
            raise SteptimeError(
                f"{where}matches needs a regular expression: {problem}; found {pattern!r}."
            ) from None
        for group in groups:
            taken = ""
            if group in self.groups:
                taken = f"on line {self.groups[group]}"
            elif group in self.names:
                taken = "a setting or variable"
            if taken:
                raise SteptimeError(
                    f"{where}The group {group!r} is already {taken}: give it another name."
                )
            self.groups[group] = line

    def _check_references(self, values: Iterable[Value], groups: Iterable[str] = ()) -> None:
        """Names inside `${…}`. What is no reference at all is refused when it is resolved."""
        names = (*self.names, *groups)
        for value in values:
            for element in elements(value):
                if isinstance(element.raw, str):
                    self._check_text(element, names)

    def _check_text(self, value: Value, names: tuple[str, ...]) -> None:
        where = line_prefix(value.line)
        for match in REFERENCE.findall(value.raw):
            content = match.strip()
            if OUTSIDE.fullmatch(content) or ":-" in content:
                continue
            for name in expression.check(content, ("env", "machine"), where):
                if name not in names:
                    raise unknown("name", name, names, where=where)


def elements(value: Value) -> list[Value]:
    return value.raw if isinstance(value.raw, list) else [value]
