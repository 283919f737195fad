"""Single values of a DLBS plan as ours, and which of them meet a condition. Writes no plan."""

from __future__ import annotations

import re
from typing import Any

from steptime.core.errors import SteptimeError
from steptime.formats._dlbs_file import DlbsPlan, Parameters
from steptime.formats._dlbs_parse import (
    DEFAULTS,
    NESTED,
    NUMBERS,
    SETTING,
    WORDS,
    Known,
    convert,
    identifier,
    is_literal,
    text,
)

# Names that DLBS's own configuration sets: a condition on one that this file lacks cannot be judged.
SHIPPED = re.compile(
    r"(exp|runtime|monitor|sys|tensorflow|tensorrt|mxnet|pytorch|nv\w+|openvino|\w*caffe2?)\..+"
)
PATTERN = re.compile(r"[\\^$*+?{}\[\]|()]")
GROUP = re.compile(r"\$\{__condition\.([\w.-]+)_(\d+)\}")
Option = tuple[Any, dict[str, str]]
"""A value, and what the groups of a pattern took out of it."""


class Values:
    def __init__(self, plan: DlbsPlan, known: Known) -> None:
        self.plan, self.known = plan, known
        self.notes: list[str] = []
        self.tables: dict[str, Parameters] = {}  # of which a value names the entry
        self.entries: set[str] = set()  # names that went into these

    def value(self, name: str, value: Any, place: str) -> Any:
        """As ours; None where a word has no counterpart."""
        if not is_literal(value):
            if nested := NESTED.fullmatch(value):
                return self._chosen(name, *nested.groups(), place=place)
            return text(
                value, lambda other: self._name(other, place), place, as_whole=name in NUMBERS
            )
        return convert(self._kind(name), value, self.known)

    def _kind(self, name: str) -> str:
        """A name that a setting is nothing but has that setting's words."""
        whole = f"${{{name}}}"
        return next((other for other in SETTING if whole in self.plan.values.get(other, [])), name)

    def _name(self, name: str, place: str) -> str:
        """What a reference is called here. A setting whose words differ from DLBS's would mislead a computation."""
        if name in WORDS and (
            differ := [word for word in self.plan.told(name) if self._differs(name, word)]
        ):
            raise SteptimeError(
                f"{place}: ${{{name}}} cannot be translated, its words differ here: {differ[0]!r}."
            )
        if name in SETTING:
            return SETTING[name]
        if name in self.plan.values:
            return identifier(name)
        if name == "exp.effective_batch":
            return "batch_size * devices"
        if name in DEFAULTS:
            return repr(DEFAULTS[name])
        if "." in name:
            raise SteptimeError(
                f"{place}: ${{{name}}} is set nowhere in this file: write its value into parameters."
            )
        return f"env('{name}')"

    def _differs(self, name: str, word: Any) -> bool:
        return is_literal(word) and convert(name, word, self.known) != word

    def _chosen(self, name: str, by: str, last: str, *, place: str) -> str:
        """`${${by}.last}`: a table, and the entry that `by` names."""
        entries: Parameters = {}
        for word in self.plan.told(by):
            key, source = convert(by, word, self.known), f"{word}.{last}"
            if source not in self.plan.values or key is None:
                raise SteptimeError(
                    f"{place}: ${{{source}}} is set nowhere in this file, or {word!r} has no counterpart."
                )
            if NESTED.search(str(self.plan.values[source][0])):
                raise SteptimeError(f"{place}: {source} is itself put together: write it out.")
            self.entries.add(source)
            entry = self.sure(name, self.plan.values[source][0], place)
            if entries.setdefault(str(key), entry) != entry:
                raise SteptimeError(f"{place}: two values of {last} for {key!r}.")
        table = identifier(f"{last}_by_{by}")
        self.tables[table] = entries
        return f"${{{table}[{ours(by)}]}}"

    def sure(self, name: str, value: Any, place: str) -> Any:
        found = self.value(name, value, place)
        if found is None:
            setting = SETTING.get(name, "")
            shelf = (
                f" `steptime list {setting}s` tells what there is." if setting in self.known else ""
            )
            raise SteptimeError(f"{place}: {name} = {value!r} has no counterpart here.{shelf}")
        return found

    def options(self, place: str, name: str, wanted: Any) -> list[Option] | None:
        """The values of a name that meet the condition. None: it asks nothing."""
        answers = wanted if isinstance(wanted, list) else [wanted]
        if name not in self.plan.values and name not in DEFAULTS:
            if SHIPPED.fullmatch(name):
                raise SteptimeError(
                    f"{place}: the condition on {name} cannot be translated, its value is not in this "
                    "file: write it into parameters."
                )
            self.notes.append(f"{place}: the condition on {name} always holds, nothing sets it")
            return None
        values = self.plan.told(name)
        if not all(map(is_literal, values)):
            if any(isinstance(answer, str) and PATTERN.search(answer) for answer in answers):
                raise SteptimeError(
                    f"{place}: the condition {name} = {wanted} cannot be translated, it is a pattern and "
                    "the value is computed."
                )
            values = answers
        found = [
            (value, groups)
            for value in values
            if (groups := _met(place, name, value, answers)) is not None
        ]
        return None if found and name not in self.plan.values else found


def _met(place: str, name: str, value: Any, answers: list[Any]) -> dict[str, str] | None:
    for answer in answers:
        if isinstance(answer, str) and PATTERN.search(answer):
            try:
                match = re.match(answer, str(value))
            except re.error as problem:
                raise SteptimeError(
                    f"{place}: the condition {name} = {answer!r} is no pattern: {problem}."
                ) from None
            if match:
                return {f"{name}_{i}": match[i] or "" for i in range(match.re.groups + 1)}
        elif answer == value or (str(answer) == str(value) and not isinstance(answer, bool)):
            return {}
    return None


def filled(value: Any, groups: dict[str, str]) -> Any:
    """With what a pattern took out of a value put in."""
    if not isinstance(value, str):
        return value
    return GROUP.sub(lambda found: groups.get(f"{found[1]}_{found[2]}", found[0]), value)


def ours(name: str) -> str:
    return SETTING.get(name) or identifier(name)
