"""A plan's TOML, taken apart into named parts. Knows on which line each word stands; gives words no meaning."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from typing import Any

from steptime.core.errors import SteptimeError, unknown

TEXTS = ("name", "title", "preset")
TABLES = ("protocol", "variables", "constants", "sweep")
RULES = {
    "override": ("set", "cases", "sweep"),
    "exclude": ("reason",),
}  # each with what it may say besides `when`
EXAMPLES = {
    "when": '{ phase = "training" }, or "${batch_size > 64}"', "set": '{ precision = "bf16" }', "reason": '"why not"',
    "cases": '[{ precision = "bf16" }, { mode = "compiled" }]', "sweep": "{ batch_size = [8, 16] }",
}  # fmt: skip
MOST_CHARACTERS, MOST_DOTS = 1_000_000, 1_000
HEADER = re.compile(r"\s*(\[\[?)\s*([\w.-]+)\s*\]\]?\s*(?:#.*)?")
KEY = re.compile(r"""\s*(?:[\w-]+\.)*["']?([\w-]+)["']?\s*=""")
WORD = re.compile(r"""\"[^"]*"|'[^']*'|[^\s,=#"'\[\]{}]+""")

Place = tuple[str, int, str]
"""Table, its number among the tables of that name, key."""


@dataclass(frozen=True)
class Value:
    """What was written and where; line 0: not in the file. A list holds values."""

    raw: Any
    line: int = 0


@dataclass(frozen=True)
class Rule:
    line: int
    when: dict[str, Value]  # all of it must hold
    computed: Value | None  # or `when` is a text: then what it computes
    set: dict[str, Value]
    cases: list[dict[str, Value]]  # each makes a point of its own
    sweep: dict[str, Value]
    reason: str


@dataclass(frozen=True)
class Document:
    texts: dict[str, Value]
    repeats: int
    tables: dict[str, dict[str, Value]]
    rules: dict[str, list[Rule]]


def at(line: int) -> str:
    return f"line {line}: " if line else ""


def parse(text: str) -> Document:
    text = text.removeprefix("\ufeff")  # some editors put it there
    _check_size(text)
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise SteptimeError(f"This is not TOML: {problem}.") from None
    except RecursionError:
        raise SteptimeError(
            "Lists or tables are nested too deeply: a plan needs a few levels."
        ) from None
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


def _check_size(text: str) -> None:
    """Before tomllib reads it, whose time grows with the square of a key's parts."""
    if len(text) > MOST_CHARACTERS:
        raise SteptimeError(
            f"A plan has at most {MOST_CHARACTERS:,} characters, found {len(text):,}: split it."
        )
    if any(words.count(".") > MOST_DOTS for words in re.split(r"[=,\n]", text)):
        raise SteptimeError(
            f"A key or a value has more than {MOST_DOTS} dots: a plan needs a few levels."
        )


class Lines:
    """Where each table and key stands, found by scanning: tomllib does not say."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        self._found: dict[Place, int] = {}
        self._words: dict[int, dict[str, int]] = {}
        counts: Counter[str | tuple[str, int]] = Counter()
        table, number = "", 0
        for line, words in enumerate(self._lines, start=1):
            if header := HEADER.fullmatch(words):
                table = header[2]
                counts[table] += 1
                above = table.partition(".")[0]  # [override.when] belongs to the [[override]] above
                number = max(counts[above] - 1, 0)
                if header[1] == "[[" and above != table:
                    counts[table, number] += 1
                    table = f"{table}.{counts[table, number] - 1}"
                self._found[table, number, ""] = line
            elif key := KEY.match(words):
                self._found.setdefault((table, number, key[1]), line)

    def of(self, *places: Place, word: object = None) -> int:
        """The first of the places that exists; with a word, the line of that entry which holds it."""
        first = next((self._found[place] for place in places if place in self._found), 0)
        return first if word is None or not first else self._words_from(first).get(str(word), first)

    def _words_from(self, first: int) -> dict[str, int]:
        """Of one entry, each with its first line. Read once: a list may hold tens of thousands, one a line."""
        if first not in self._words:
            after = min(
                (line for line in self._found.values() if line > first),
                default=len(self._lines) + 1,
            )
            words = self._words.setdefault(first, {})
            for line in range(first, after):
                for word in WORD.findall(self._lines[line - 1]):
                    words.setdefault(word.strip("\"'"), line)
        return self._words[first]


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
            raise SteptimeError(
                f"{at(line)}repeats must be a whole number of at least 1, found {found!r}."
            )
        return found

    def table(self, name: str) -> dict[str, Value]:
        found = self.content.get(name, {})
        if not isinstance(found, dict):
            line = self.lines.of(("", 0, name))
            raise SteptimeError(
                f"{at(line)}{name} must be a table: write [{name}], and its settings below."
            )
        near = (("", 0, name), (name, 0, ""))
        return {
            key: self._value(value, (name, 0, key), (f"{name}.{key}", 0, ""), ("", 0, key), *near)
            for key, value in found.items()
        }

    def rules(self, name: str) -> list[Rule]:
        found = self.content.get(name, [])
        if not isinstance(found, list) or not all(isinstance(rule, dict) for rule in found):
            line = self.lines.of((name, 0, ""), ("", 0, name))
            raise SteptimeError(
                f"{at(line)}{name} must be a list of tables: write [[{name}]] above each."
            )
        return [self._rule(name, number, rule) for number, rule in enumerate(found)]

    def _rule(self, name: str, number: int, rule: dict[str, Any]) -> Rule:
        known = ("when", *RULES[name])
        line = self.lines.of((name, number, ""), ("", 0, name))
        for key in rule:
            where = at(self.lines.of((name, number, key)) or line)
            if key not in known:
                raise unknown(f"key of [[{name}]]", key, known, where=where)
            if not _fits(key, rule[key]):
                raise SteptimeError(
                    f"{where}{key} is written so: {key} = {EXAMPLES[key]}; found {rule[key]!r}."
                )
        if name == "override" and not set(rule) & set(RULES[name]):
            raise SteptimeError(
                f"{at(line)}[[override]] needs set, cases or sweep, for example: set = {EXAMPLES['set']}."
            )
        for key in known if name == "exclude" else ():
            if key not in rule:
                raise SteptimeError(
                    f"{at(line)}[[{name}]] needs {key}, for example: {key} = {EXAMPLES[key]}."
                )
        return self._made(name, number, rule, line)

    def _made(self, name: str, number: int, rule: dict[str, Any], line: int) -> Rule:
        when = rule.get("when", {})
        computed = (
            Value(when, self.lines.of((name, number, "when")) or line)
            if isinstance(when, str)
            else None
        )
        return Rule(
            line=line,
            when={} if computed else self._part((name, number, "when"), when),
            computed=computed,
            set=self._part((name, number, "set"), rule.get("set", {})),
            cases=[
                self._part((name, number, "cases"), case, i)
                for i, case in enumerate(rule.get("cases", []))
            ],
            sweep=self._part((name, number, "sweep"), rule.get("sweep", {})),
            reason=rule.get("reason", ""),
        )

    def _part(
        self, place: Place, content: dict[str, Any], index: int | None = None
    ) -> dict[str, Value]:
        """Written as a table of its own, or inside the rule; one of several cases is found by its words then."""
        name, number, part = place
        table, near = f"{name}.{part}", (place, (name, number, ""), ("", 0, name))
        if index is None:
            return {
                key: self._value(value, (table, number, key), *near)
                for key, value in content.items()
            }
        own = f"{table}.{index}"
        lines = {
            key: self.lines.of((own, number, key)) or self.lines.of(*near, word=content[key])
            for key in content
        }
        return {
            key: Value(
                [Value(element, lines[key]) for element in raw] if isinstance(raw, list) else raw,
                lines[key],
            )
            for key, raw in content.items()
        }

    def _value(self, raw: Any, *places: Place) -> Value:
        if isinstance(raw, list):
            raw = [Value(element, self.lines.of(*places, word=element)) for element in raw]
        return Value(raw, self.lines.of(*places))


def _fits(key: str, found: Any) -> bool:
    """Whether this can be such a part of a rule at all."""
    if key == "cases":
        return (
            isinstance(found, list)
            and bool(found)
            and all(isinstance(case, dict) for case in found)
        )
    if key == "reason":
        return isinstance(found, str) and bool(found)
    return (isinstance(found, dict) and bool(found)) or (
        key == "when" and isinstance(found, str) and "${" in found
    )
