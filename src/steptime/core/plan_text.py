"""A plan's TOML, taken apart into named parts. Knows on which line each word stands; gives words no meaning."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from typing import Any

from steptime.core.errors import SteptimeError, unknown

TEXTS = ("name", "title", "profile")
TABLES = ("protocol", "variables", "constants", "sweep")
RULES = {"override": "set", "exclude": "reason"}  # each with what it needs besides `when`
EXAMPLES = {"when": '{ phase = "training" }', "set": '{ precision = "bf16" }', "reason": '"why not"'}
HEADER = re.compile(r"\s*\[\[?\s*([\w.-]+)\s*\]\]?\s*(?:#.*)?")
KEY = re.compile(r"""\s*(?:[\w-]+\.)*["']?([\w-]+)["']?\s*=""")

Place = tuple[str, int, str]
"""Table, its number among the tables of that name, key."""


@dataclass(frozen=True)
class Value:
    """What was written and where; line 0: not in the file. A list holds values."""

    raw: Any
    line: int = 0


@dataclass(frozen=True)
class Rule:
    when: dict[str, Value]
    set: dict[str, Value]
    reason: str
    line: int


@dataclass(frozen=True)
class Document:
    texts: dict[str, Value]
    repeats: int
    tables: dict[str, dict[str, Value]]
    rules: dict[str, list[Rule]]


def at(line: int) -> str:
    return f"line {line}: " if line else ""


def parse(text: str) -> Document:
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise SteptimeError(f"This is not TOML: {problem}.") from None
    reader = _Reader(text, content)
    for key in content:
        if key not in (known := (*TEXTS, "repeats", *TABLES, *RULES)):
            raise unknown("key", key, known, where=at(reader.lines.of((key, 0, ""), ("", 0, key))))
    return Document(
        texts={name: reader.text(name) for name in TEXTS if name in content},
        repeats=reader.repeats(),
        tables={name: reader.table(name) for name in TABLES},
        rules={name: reader.rules(name) for name in RULES},
    )


class Lines:
    """Where each table and key stands, found by scanning: tomllib does not say."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        self._found: dict[Place, int] = {}
        counts: Counter[str] = Counter()
        table, number = "", 0
        for line, words in enumerate(self._lines, start=1):
            if header := HEADER.fullmatch(words):
                table = header[1]
                counts[table] += 1
                number = max(
                    counts[table.partition(".")[0]] - 1, 0
                )  # [override.when] belongs to the [[override]] above
                self._found[table, number, ""] = line
            elif key := KEY.match(words):
                self._found.setdefault((table, number, key[1]), line)

    def of(self, *places: Place, word: object = None) -> int:
        """The first of the places that exists; with a word, the line of that entry which holds it."""
        first = next((self._found[place] for place in places if place in self._found), 0)
        if word is None or not first:
            return first
        after = min((line for line in self._found.values() if line > first), default=len(self._lines) + 1)
        pattern = re.compile(rf"(?<!\w){re.escape(str(word))}(?!\w)")
        return next((line for line in range(first, after) if pattern.search(self._lines[line - 1])), first)


class _Reader:
    def __init__(self, text: str, content: dict[str, Any]) -> None:
        self.lines, self.content = Lines(text), content

    def text(self, name: str) -> Value:
        found, line = self.content[name], self.lines.of(("", 0, name))
        if not isinstance(found, str):
            raise SteptimeError(f"{at(line)}{name} must be a text in quotes, found {found!r}.")
        return Value(found, line)

    def repeats(self) -> int:
        found = self.content.get("repeats", 1)
        if type(found) is not int or found < 1:
            line = self.lines.of(("", 0, "repeats"))
            raise SteptimeError(f"{at(line)}repeats must be a whole number of at least 1, found {found!r}.")
        return found

    def table(self, name: str) -> dict[str, Value]:
        found = self.content.get(name, {})
        if not isinstance(found, dict):
            line = self.lines.of(("", 0, name))
            raise SteptimeError(f"{at(line)}{name} must be a table: write [{name}], and its settings below.")
        near = (("", 0, name), (name, 0, ""))
        return {
            key: self._value(value, (name, 0, key), (f"{name}.{key}", 0, ""), ("", 0, key), *near)
            for key, value in found.items()
        }

    def rules(self, name: str) -> list[Rule]:
        found = self.content.get(name, [])
        if not isinstance(found, list) or not all(isinstance(rule, dict) for rule in found):
            line = self.lines.of((name, 0, ""), ("", 0, name))
            raise SteptimeError(f"{at(line)}{name} must be a list of tables: write [[{name}]] above each.")
        return [self._rule(name, number, rule) for number, rule in enumerate(found)]

    def _rule(self, name: str, number: int, rule: dict[str, Any]) -> Rule:
        needs = ("when", RULES[name])
        line = self.lines.of((name, number, ""), ("", 0, name))
        for key in rule:
            if key not in needs:
                raise unknown(f"key of [[{name}]]", key, needs, where=at(self.lines.of((name, number, key)) or line))
        for key in needs:
            if not isinstance(rule.get(key), str if key == "reason" else dict) or not rule[key]:
                raise SteptimeError(f"{at(line)}[[{name}]] needs {key}, for example: {key} = {EXAMPLES[key]}.")
        when, settings = self._part(name, number, "when", rule), self._part(name, number, "set", rule)
        return Rule(when=when, set=settings, reason=rule.get("reason", ""), line=line)

    def _part(self, name: str, number: int, part: str, rule: dict[str, Any]) -> dict[str, Value]:
        near = ((name, number, part), (name, number, ""), ("", 0, name))
        return {
            key: self._value(value, (f"{name}.{part}", number, key), *near) for key, value in rule.get(part, {}).items()
        }

    def _value(self, raw: Any, *places: Place) -> Value:
        if isinstance(raw, list):
            raw = [Value(element, self.lines.of(*places, word=element)) for element in raw]
        return Value(raw, self.lines.of(*places))
