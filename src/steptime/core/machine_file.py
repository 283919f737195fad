"""The machine file: which interpreter, environment or container runs a framework here. Reads text, not files."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from steptime.core.errors import SteptimeError, unknown
from steptime.core.plan_text import Lines, at

WAYS = ("python", "launch")


@dataclass(frozen=True)
class MachineFile:
    path: str = ""  # empty: there is none
    text: str = ""
    commands: dict[str, tuple[str, ...]] = field(default_factory=dict)  # framework -> what starts its Python

    def to_dict(self) -> dict[str, Any]:
        return {"path": self.path, "frameworks": {name: list(words) for name, words in self.commands.items()}}


def parse(text: str, path: str, frameworks: Iterable[str]) -> MachineFile:
    try:
        return MachineFile(path, text, _Reader(text).commands(set(frameworks)))
    except SteptimeError as problem:
        raise SteptimeError(f"The machine file {path}: {problem}") from None


class _Reader:
    def __init__(self, text: str) -> None:
        try:
            self.content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as problem:
            raise SteptimeError(f"this is not TOML: {problem}.") from None
        self.lines = Lines(text)

    def commands(self, known: set[str]) -> dict[str, tuple[str, ...]]:
        for key in self.content:
            if key != "frameworks":
                raise unknown("part", key, ["frameworks"], at(self.lines.of((key, 0, ""), ("", 0, key))))
        found = self.content.get("frameworks", {})
        if not isinstance(found, dict):
            raise SteptimeError(
                f"{at(self.lines.of(('', 0, 'frameworks')))}write [frameworks.NAME], and `python` below."
            )
        for name in found:
            if name not in known:
                raise unknown("framework", name, known, self._where(name))
        return {name: self._command(name, entry) for name, entry in found.items()}

    def _command(self, name: str, entry: Any) -> tuple[str, ...]:
        if not isinstance(entry, dict):
            raise SteptimeError(f'{self._where(name)}write [frameworks.{name}], and python = "…/bin/python" below.')
        for key in entry:
            if key not in WAYS:
                raise unknown(f"key of [frameworks.{name}]", key, WAYS, self._where(name, key))
        if len(entry) != 1:
            raise SteptimeError(f"{self._where(name)}[frameworks.{name}] needs one of python and launch.")
        ((key, value),) = entry.items()
        words = [value] if key == "python" else value
        if not isinstance(words, list) or not words or not all(isinstance(word, str) and word for word in words):
            kind = "a text in quotes" if key == "python" else 'a list of words: ["podman", "run", …, "python"]'
            raise SteptimeError(f"{self._where(name, key)}{key} must be {kind}, found {value!r}.")
        return tuple(words)

    def _where(self, name: str, key: str = "") -> str:
        table = f"frameworks.{name}"
        return at(self.lines.of((table, 0, key), (table, 0, ""), ("frameworks", 0, name), ("frameworks", 0, "")))
