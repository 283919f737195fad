"""A DLBS plan taken apart: constants, variables, extensions, and which of their names matter. Translates nothing."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from steptime.core.errors import SteptimeError
from steptime.formats._dlbs_parse import DEFAULTS, SETTING, is_literal, referenced

SECTIONS = ("parameters", "variables", "extensions")
PARTS = ("condition", "parameters", "cases")
Parameters = dict[str, Any]


@dataclass(frozen=True)
class Extension:
    place: str
    condition: Parameters
    cases: list[Parameters]  # with the parameters that they share

    @property
    def sets(self) -> list[str]:
        return list(dict.fromkeys(name for case in self.cases for name in case))


@dataclass(frozen=True)
class DlbsPlan:
    parameters: Parameters
    variables: dict[str, list[Any]]
    extensions: list[Extension]

    @cached_property
    def values(self) -> dict[str, list[Any]]:
        """Everything that the plan writes for each name."""
        found = {name: [value] for name, value in self.parameters.items()}
        found |= {name: list(values) for name, values in self.variables.items()}
        for case in (case for extension in self.extensions for case in extension.cases):
            for name, value in case.items():
                found.setdefault(name, []).append(value)
        return found

    @cached_property
    def needed(self) -> list[str]:
        """Settings, and what they depend on: by reference, or by the condition under which they are set."""
        data = ["exp.data_dir"] if self.knows_folders else []
        found = [
            name
            for name in self.values
            if name in SETTING or name in ("exp.gpus", "exp.status", *data)
        ]
        for name in found:  # grows on the way
            asked = [part for value in self.values[name] for part in referenced(value)]
            asked += [
                key
                for extension in self.extensions
                if name in extension.sets
                for key in extension.condition
            ]
            found += [
                part for part in dict.fromkeys(asked) if part in self.values and part not in found
            ]
        return found

    @property
    def settings(self) -> set[str]:
        """Settings of ours that have a value before any extension."""
        return {SETTING[name] for name in (*self.parameters, *self.variables) if name in SETTING}

    @property
    def folders(self) -> list[Any]:
        """Of data. Where one is named they are real, unless the plan has DLBS's own word for that."""
        named = [] if "exp.data" in self.values else self.values.get("exp.data_dir", [])
        return named if any(named) else []

    @property
    def knows_folders(self) -> bool:
        """A folder that is put together is not empty, whatever it is."""
        return bool(self.folders) and all(map(is_literal, self.folders))

    def told(self, name: str) -> list[Any]:
        """All values that the plan writes for a name, and DLBS's own where it writes none at first."""
        given = self.values.get(name, [])
        first = name in self.parameters or name in self.variables or name not in DEFAULTS
        return list(dict.fromkeys(given if first else [*given, DEFAULTS[name]]))


def loaded(written: str) -> DlbsPlan:
    try:
        content = json.loads(re.sub(r"^\s*//.*$", "", written, flags=re.MULTILINE))
    except (ValueError, RecursionError) as problem:
        raise SteptimeError(f"This is not JSON: {problem}.") from None
    if not isinstance(content, dict) or not set(content) <= set(SECTIONS):
        found = ", ".join(content) if isinstance(content, dict) else type(content).__name__
        raise SteptimeError(f"A DLBS plan is an object with {', '.join(SECTIONS)}; found {found}.")
    parameters = _parameters(content.get("parameters", {}), "parameters")
    variables = _table(content.get("variables", {}), "variables")
    for name, values in variables.items():
        plain = isinstance(values, list) and all(
            isinstance(value, str | int | float) for value in values
        )
        if not plain or not values:
            raise SteptimeError(
                f"variables: {name} must be a list of values, and not empty; found {values!r}."
            )
    extensions = content.get("extensions", [])
    if not isinstance(extensions, list):
        raise SteptimeError(f"extensions must be a list, found {extensions!r}.")
    constants = {name: value for name, value in parameters.items() if name not in variables}
    return DlbsPlan(
        constants, variables, [_extension(f"extension {i}", e) for i, e in enumerate(extensions, 1)]
    )


def _extension(place: str, found: Any) -> Extension:
    entry = _table(found, place)
    if not set(entry) <= set(PARTS):
        raise SteptimeError(f"{place} has {', '.join(PARTS)}; found {', '.join(entry)}.")
    shared, cases = _parameters(entry.get("parameters", {}), place), entry.get("cases", [])
    if not isinstance(cases, list):
        raise SteptimeError(f"{place}: cases must be a list, found {cases!r}.")
    condition = _table(entry.get("condition", {}), f"{place}, condition")
    for name, wanted in condition.items():
        if not all(
            isinstance(answer, str | int | float)
            for answer in (wanted if isinstance(wanted, list) else [wanted])
        ):
            raise SteptimeError(
                f"{place}: the condition on {name} must be a value or a list of values, found {wanted!r}."
            )
    several = [shared | _parameters(case, f"{place}, cases") for case in cases]
    return Extension(place, condition, several or [shared])


def _table(found: Any, place: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise SteptimeError(f"{place} must be an object, found {found!r}.")
    return found


def _parameters(found: Any, place: str) -> Parameters:
    """A described parameter counts as its value; lines of a text are joined."""
    values = {
        name: value.get("val") if isinstance(value, dict) else value
        for name, value in _table(found, place).items()
    }
    for name, value in values.items():
        if isinstance(value, list):
            values[name] = " ".join(map(str, value))
        elif value is None:
            raise SteptimeError(f"{place}: {name} has no value.")
    return values
