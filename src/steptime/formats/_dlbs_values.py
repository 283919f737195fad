"""Single values of a DLBS plan as ours, and which of them meet a condition. Writes no plan."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from steptime.core.errors import SteptimeError
from steptime.formats._dlbs_file import DlbsPlan, Parameters
from steptime.formats._dlbs_parse import (
    DEFAULTS,
    NESTED,
    NUMBERS,
    SETTING,
    TEXTS,
    Choices,
    convert,
    identifier,
    is_literal,
    translate,
)

# Names that DLBS's own configuration sets. A condition on one that the plan lacks cannot be judged.
SHIPPED = re.compile(
    r"(exp|runtime|monitor|sys|tensorflow|tensorrt|mxnet|pytorch|nv\w+|openvino|\w*caffe2?)\..+"
)
# A text with one of these characters is a regular expression.
PATTERN = re.compile(r"[\\^$*+?{}\[\]|()]")
# ${__condition.exp.model_1}: what group 1 of the condition matched.
GROUP = re.compile(r"\$\{__condition\.([\w.-]+)_(\d+)\}")


class Option(NamedTuple):
    """A value that meets a condition, and what the groups of its pattern matched."""

    value: Any
    groups: dict[str, str]


class Values:
    def __init__(self, plan: DlbsPlan, choices: Choices) -> None:
        self.plan = plan
        self.choices = choices
        self.notes: list[str] = []
        # Tables whose entry another value names.
        self.tables: dict[str, Parameters] = {}
        # DLBS names that went into these.
        self.entries: set[str] = set()

    def translate(self, name: str, value: Any, location: str) -> Any:
        """A value of a name as ours; None if it has no counterpart."""
        if is_literal(value):
            return convert(self._setting_of(name), value, self.choices)
        if nested := NESTED.fullmatch(value):
            return self._table_entry(name, nested[1], nested[2], location)

        def our_name(reference: str) -> str:
            return self._reference(reference, location)

        return translate(value, our_name, location, is_integer=name in NUMBERS)

    def translate_required(self, name: str, value: Any, location: str) -> Any:
        translated = self.translate(name, value, location)
        if translated is None:
            setting = SETTING.get(name, "")
            hint = f" See `steptime list {setting}s`." if setting in self.choices else ""
            raise SteptimeError(f"{location}: {name} = {value!r} has no counterpart here.{hint}")
        return translated

    def _setting_of(self, name: str) -> str:
        """The setting that is nothing but this name, and so has its values; else the name."""
        reference = f"${{{name}}}"
        for setting in SETTING:
            if reference in self.plan.values.get(setting, []):
                return setting
        return name

    def _reference(self, name: str, location: str) -> str:
        """What a reference is called here."""
        if name in TEXTS:
            self._check_same_values(name, location)
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
                f"{location}: ${{{name}}} is set nowhere in this file: "
                "write its value into parameters."
            )
        return f"env('{name}')"

    def _check_same_values(self, name: str, location: str) -> None:
        """A computation would be wrong with values that are called otherwise here."""
        for value in self.plan.possible_values(name):
            if is_literal(value) and convert(name, value, self.choices) != value:
                raise SteptimeError(
                    f"{location}: ${{{name}}} cannot be translated, "
                    f"its values differ here: {value!r}."
                )

    def _table_entry(self, name: str, key_name: str, last: str, location: str) -> str:
        """`${${key_name}.last}`: a table, and the entry that the value of `key_name` names."""
        entries: Parameters = {}
        for value in self.plan.possible_values(key_name):
            key = convert(key_name, value, self.choices)
            source = f"{value}.{last}"
            if source not in self.plan.values or key is None:
                raise SteptimeError(
                    f"{location}: ${{{source}}} is set nowhere in this file, "
                    f"or {value!r} has no counterpart."
                )
            source_value = self.plan.values[source][0]
            if NESTED.search(str(source_value)):
                raise SteptimeError(f"{location}: {source} is itself put together: write it out.")
            self.entries.add(source)
            entry = self.translate_required(name, source_value, location)
            if entries.setdefault(str(key), entry) != entry:
                raise SteptimeError(f"{location}: two values of {last} for {key!r}.")
        table = identifier(f"{last}_by_{key_name}")
        self.tables[table] = entries
        return f"${{{table}[{our_name_of(key_name)}]}}"

    def options(self, location: str, name: str, condition: Any) -> list[Option] | None:
        """The values of a name that meet the condition. None: the condition always holds."""
        answers = condition if isinstance(condition, list) else [condition]
        if name not in self.plan.values and name not in DEFAULTS:
            if SHIPPED.fullmatch(name):
                raise SteptimeError(
                    f"{location}: the condition on {name} cannot be translated, "
                    "its value is not in this file: write it into parameters."
                )
            self.notes.append(f"{location}: the condition on {name} always holds, nothing sets it")
            return None
        values = self.plan.possible_values(name)
        if not all(is_literal(value) for value in values):
            if any(_is_pattern(answer) for answer in answers):
                raise SteptimeError(
                    f"{location}: the condition {name} = {condition} cannot be translated, "
                    "it is a pattern and the value is computed."
                )
            values = answers
        options = []
        for value in values:
            groups = _match_answers(location, name, value, answers)
            if groups is not None:
                options.append(Option(value, groups))
        if options and name not in self.plan.values:
            # The plan never changes DLBS's default, which meets it.
            return None
        return options


def _is_pattern(answer: Any) -> bool:
    return isinstance(answer, str) and PATTERN.search(answer) is not None


def _match_answers(
    location: str, name: str, value: Any, answers: list[Any]
) -> dict[str, str] | None:
    """The groups of the first answer that the value meets. None: it meets none."""
    for answer in answers:
        if _is_pattern(answer):
            try:
                match = re.match(answer, str(value))
            except re.error as problem:
                raise SteptimeError(
                    f"{location}: the condition {name} = {answer!r} is no pattern: {problem}."
                ) from None
            if match:
                return {f"{name}_{i}": match[i] or "" for i in range(match.re.groups + 1)}
        elif answer == value or (str(answer) == str(value) and not isinstance(answer, bool)):
            return {}
    return None


def fill_groups(value: Any, groups: dict[str, str]) -> Any:
    """Insert what the groups of a pattern matched."""
    if not isinstance(value, str):
        return value

    def insert(match: re.Match[str]) -> str:
        return groups.get(f"{match[1]}_{match[2]}", match[0])

    return GROUP.sub(insert, value)


def our_name_of(name: str) -> str:
    return SETTING.get(name) or identifier(name)
