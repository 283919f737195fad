"""A DLBS plan, parsed: constants, variables, extensions, and which names matter.

Translates nothing."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from steptime.core.errors import SteptimeError
from steptime.formats._dlbs_parse import DEFAULTS, SETTING, is_literal, references

SECTIONS = ("parameters", "variables", "extensions")
FIELDS = ("condition", "parameters", "cases")
Parameters = dict[str, Any]


@dataclass(frozen=True)
class Extension:
    # For messages: which extension of the plan it is.
    name: str
    condition: Parameters
    # With the parameters that they share.
    cases: list[Parameters]

    @property
    def sets(self) -> list[str]:
        names: dict[str, None] = {}
        for case in self.cases:
            names.update(dict.fromkeys(case))
        return list(names)


@dataclass(frozen=True)
class DlbsPlan:
    parameters: Parameters
    variables: dict[str, list[Any]]
    extensions: list[Extension]

    @cached_property
    def values(self) -> dict[str, list[Any]]:
        """Everything that the plan writes for each name."""
        values = {name: [value] for name, value in self.parameters.items()}
        for name, several in self.variables.items():
            values[name] = list(several)
        for extension in self.extensions:
            for case in extension.cases:
                for name, value in case.items():
                    values.setdefault(name, []).append(value)
        return values

    @cached_property
    def needed_names(self) -> list[str]:
        """Settings, and the names that they depend on."""
        roots = {*SETTING, "exp.gpus", "exp.status"}
        if self.knows_folders:
            roots.add("exp.data_dir")
        names = [name for name in self.values if name in roots]
        # The list grows while it is read.
        for name in names:
            for other in self._dependencies(name):
                if other in self.values and other not in names:
                    names.append(other)
        return names

    def _dependencies(self, name: str) -> list[str]:
        """Names in the values of a name, and in the conditions under which it is set."""
        names = []
        for value in self.values[name]:
            names += references(value)
        for extension in self.extensions:
            if name in extension.sets:
                names += extension.condition
        return names

    @property
    def settings(self) -> set[str]:
        """Settings of ours that have a value before any extension."""
        return {SETTING[name] for name in (*self.parameters, *self.variables) if name in SETTING}

    @property
    def folders(self) -> list[Any]:
        """Folders of data. If one is named, data are real, unless `exp.data` says so itself."""
        if "exp.data" in self.values:
            return []
        folders = self.values.get("exp.data_dir", [])
        return folders if any(folders) else []

    @property
    def knows_folders(self) -> bool:
        """Whether they are literal. One that is computed is not empty, whatever it is."""
        return bool(self.folders) and all(is_literal(folder) for folder in self.folders)

    def possible_values(self, name: str) -> list[Any]:
        """What the plan writes for a name, and DLBS's default if it writes none at first."""
        values = list(self.values.get(name, []))
        has_first = name in self.parameters or name in self.variables
        if not has_first and name in DEFAULTS:
            values.append(DEFAULTS[name])
        return list(dict.fromkeys(values))


def parse_plan(text: str) -> DlbsPlan:
    content = _parse_content(text)
    parameters = _parse_parameters(content.get("parameters", {}), "parameters")
    variables = _check_object(content.get("variables", {}), "variables")
    for name, values in variables.items():
        if not isinstance(values, list) or not values or not _are_plain(values):
            raise SteptimeError(
                f"variables: {name} must be a list of values, and not empty; found {values!r}."
            )
    extensions = content.get("extensions", [])
    if not isinstance(extensions, list):
        raise SteptimeError(f"extensions must be a list, found {extensions!r}.")
    parsed = []
    for position, extension in enumerate(extensions, 1):
        parsed.append(_parse_extension(f"extension {position}", extension))
    constants = {name: value for name, value in parameters.items() if name not in variables}
    return DlbsPlan(constants, variables, parsed)


def _parse_content(text: str) -> dict[str, Any]:
    without_comments = re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)
    try:
        content = json.loads(without_comments)
    except (ValueError, RecursionError) as problem:
        raise SteptimeError(f"This is not JSON: {problem}.") from None
    if not isinstance(content, dict) or not set(content) <= set(SECTIONS):
        actual = ", ".join(content) if isinstance(content, dict) else type(content).__name__
        raise SteptimeError(f"A DLBS plan is an object with {', '.join(SECTIONS)}; found {actual}.")
    return content


def _parse_extension(name: str, value: Any) -> Extension:
    entry = _check_object(value, name)
    if not set(entry) <= set(FIELDS):
        raise SteptimeError(f"{name} has {', '.join(FIELDS)}; found {', '.join(entry)}.")
    shared = _parse_parameters(entry.get("parameters", {}), name)
    cases = entry.get("cases", [])
    if not isinstance(cases, list):
        raise SteptimeError(f"{name}: cases must be a list, found {cases!r}.")
    condition = _check_object(entry.get("condition", {}), f"{name}, condition")
    for key, answers in condition.items():
        if not _are_plain(answers if isinstance(answers, list) else [answers]):
            raise SteptimeError(
                f"{name}: the condition on {key} must be a value or a list of values, "
                f"found {answers!r}."
            )
    several = [shared | _parse_parameters(case, f"{name}, cases") for case in cases]
    return Extension(name, condition, several or [shared])


def _are_plain(values: list[Any]) -> bool:
    return all(isinstance(value, str | int | float) for value in values)


def _check_object(value: Any, location: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SteptimeError(f"{location} must be an object, found {value!r}.")
    return value


def _parse_parameters(value: Any, location: str) -> Parameters:
    """A parameter with a description counts as its value; the lines of a text are joined."""
    parameters = {}
    for name, described in _check_object(value, location).items():
        plain = described.get("val") if isinstance(described, dict) else described
        if plain is None:
            raise SteptimeError(f"{location}: {name} has no value.")
        if isinstance(plain, list):
            plain = " ".join(str(line) for line in plain)
        parameters[name] = plain
    return parameters
