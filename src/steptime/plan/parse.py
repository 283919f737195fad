"""Parse a plan's TOML into tables and rules, each value with its line. Gives names no meaning."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

from steptime.core.errors import SteptimeError, unknown

TEXTS = ("name", "title", "preset")
TABLES = ("protocol", "variables", "constants", "sweep")
# What each kind of rule may contain besides `when`.
RULES = {
    "override": ("set", "cases", "sweep"),
    "exclude": ("reason",),
}
KEYS = (*TEXTS, "repeats", *TABLES, *RULES)
EXAMPLES = {
    "when": '{ phase = "training" }, or "${batch_size > 64}"',
    "set": '{ precision = "bf16" }',
    "reason": '"why not"',
    "cases": '[{ precision = "bf16" }, { mode = "compiled" }]',
    "sweep": "{ batch_size = [8, 16] }",
}
# Limits against files that would take minutes to read.
MOST_CHARACTERS = 1_000_000
MOST_DOTS = 1_000
# [name] or [[name]], perhaps with a comment.
HEADER = re.compile(r"\s*(\[\[?)\s*([\w.-]+)\s*\]\]?\s*(?:#.*)?")
# The last part of a key, which may be dotted or in quotes.
KEY = re.compile(r"""\s*(?:[\w-]+\.)*["']?([\w-]+)["']?\s*=""")
# A text in quotes, or a bare value.
TOKEN = re.compile(r"""\"[^"]*"|'[^']*'|[^\s,=#"'\[\]{}]+""")


@dataclass(frozen=True)
class Value:
    """What is written, and on which line; line 0: not in the file. A list holds values."""

    raw: Any
    line: int = 0


@dataclass(frozen=True)
class Rule:
    line: int
    when: dict[str, Value]  # all of it must hold
    condition: Value | None  # instead of the table `when`: an expression that must be true
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


def empty_document(name: str) -> Document:
    """A plan that says nothing but its name."""
    return Document(
        texts={"name": Value(name)},
        repeats=1,
        tables={table: {} for table in TABLES},
        rules={kind: [] for kind in RULES},
    )


def line_prefix(line: int) -> str:
    """How a message begins that is about this line."""
    return f"line {line}: " if line else ""


def parse(text: str) -> Document:
    text = text.removeprefix("\ufeff")  # a byte order mark, which some editors write
    _check_size(text)
    try:
        content = tomllib.loads(text)
    # ValueError also for a number of thousands of digits.
    except ValueError as problem:
        raise SteptimeError(f"This is not TOML: {problem}.") from None
    except RecursionError:
        raise SteptimeError(
            "Lists or tables are nested too deeply: a plan needs a few levels."
        ) from None
    reader = _Reader(text, content)
    for key in content:
        if key not in KEYS:
            line = reader.lines.find(Position(key), Position("", key=key))
            raise unknown("key", key, KEYS, where=line_prefix(line))
    return Document(
        texts={name: reader.text(name) for name in TEXTS if name in content},
        repeats=reader.repeats(),
        tables={name: reader.table(name) for name in TABLES},
        rules={name: reader.rules(name) for name in RULES},
    )


def _check_size(text: str) -> None:
    """Before tomllib reads it: its time grows with the square of the parts of a dotted key."""
    if len(text) > MOST_CHARACTERS:
        raise SteptimeError(
            f"A plan has at most {MOST_CHARACTERS:,} characters, found {len(text):,}: split it."
        )
    for piece in re.split(r"[=,\n]", text):
        if piece.count(".") > MOST_DOTS:
            raise SteptimeError(
                f"A key or a value has more than {MOST_DOTS} dots: a plan needs a few levels."
            )


class Position(NamedTuple):
    """Where something may stand. An empty key is the header of the table."""

    table: str
    number: int = 0  # among the tables of that name
    key: str = ""


class Lines:
    """The line of each table and key, found by scanning the text: tomllib does not tell."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        self._line_of: dict[Position, int] = {}
        self._tokens: dict[int, dict[str, int]] = {}
        self._scan()

    def _scan(self) -> None:
        counts: Counter[str | tuple[str, int]] = Counter()
        table = ""
        number = 0
        for line, text in enumerate(self._lines, start=1):
            header = HEADER.fullmatch(text)
            key = KEY.match(text)
            if header:
                table = header[2]
                counts[table] += 1
                # [override.when] belongs to the [[override]] above.
                parent = table.partition(".")[0]
                number = max(counts[parent] - 1, 0)
                if header[1] == "[[" and parent != table:
                    # [[override.cases]]: one of several, so its number becomes part of the name.
                    counts[table, number] += 1
                    table = f"{table}.{counts[table, number] - 1}"
                self._line_of[Position(table, number)] = line
            elif key:
                # The first one counts: a later line of this form may be part of a long text.
                self._line_of.setdefault(Position(table, number, key[1]), line)

    def find(self, *positions: Position, token: object = None) -> int:
        """The line of the first position that exists; 0 if none does.

        With a token, the line within that entry which contains the token."""
        for position in positions:
            if position in self._line_of:
                line = self._line_of[position]
                return line if token is None else self._tokens_from(line).get(str(token), line)
        return 0

    def _tokens_from(self, first: int) -> dict[str, int]:
        """The tokens of the entry that begins on this line, each with its first line.

        Scanned once: a list may have tens of thousands of elements, each on its own line."""
        if first not in self._tokens:
            later_lines = (line for line in self._line_of.values() if line > first)
            end = min(later_lines, default=len(self._lines) + 1)
            tokens: dict[str, int] = {}
            for line in range(first, end):
                for token in TOKEN.findall(self._lines[line - 1]):
                    tokens.setdefault(token.strip("\"'"), line)
            self._tokens[first] = tokens
        return self._tokens[first]


class _Reader:
    def __init__(self, text: str, content: dict[str, Any]) -> None:
        self.lines = Lines(text)
        self.content = content

    def text(self, name: str) -> Value:
        text = self.content[name]
        line = self.lines.find(Position("", key=name))
        if not isinstance(text, str):
            prefix = line_prefix(line)
            raise SteptimeError(f"{prefix}{name} must be a text in quotes, found {text!r}.")
        return Value(text, line)

    def repeats(self) -> int:
        count = self.content.get("repeats", 1)
        if type(count) is not int or count < 1:
            prefix = line_prefix(self.lines.find(Position("", key="repeats")))
            raise SteptimeError(
                f"{prefix}repeats must be a whole number of at least 1, found {count!r}."
            )
        return count

    def table(self, name: str) -> dict[str, Value]:
        content = self.content.get(name, {})
        if not isinstance(content, dict):
            prefix = line_prefix(self.lines.find(Position("", key=name)))
            raise SteptimeError(
                f"{prefix}{name} must be a table: write [{name}], and its settings below."
            )
        values = {}
        for key, raw in content.items():
            values[key] = self._value(
                raw,
                Position(name, key=key),
                Position(f"{name}.{key}"),
                Position("", key=key),
                Position("", key=name),
                Position(name),
            )
        return values

    def rules(self, kind: str) -> list[Rule]:
        tables = self.content.get(kind, [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            line = self.lines.find(Position(kind), Position("", key=kind))
            raise SteptimeError(
                f"{line_prefix(line)}{kind} must be a list of tables: write [[{kind}]] above each."
            )
        return [self._rule(kind, number, table) for number, table in enumerate(tables)]

    def _rule(self, kind: str, number: int, table: dict[str, Any]) -> Rule:
        line = self.lines.find(Position(kind, number), Position("", key=kind))
        self._check_rule(kind, number, table, line)
        when = table.get("when", {})
        condition = None
        if isinstance(when, str):
            condition = Value(when, self.lines.find(Position(kind, number, "when")) or line)
            when = {}
        cases = [
            self._case(Position(kind, number, "cases"), case, index)
            for index, case in enumerate(table.get("cases", []))
        ]
        return Rule(
            line=line,
            when=self._section(Position(kind, number, "when"), when),
            condition=condition,
            set=self._section(Position(kind, number, "set"), table.get("set", {})),
            cases=cases,
            sweep=self._section(Position(kind, number, "sweep"), table.get("sweep", {})),
            reason=table.get("reason", ""),
        )

    def _check_rule(self, kind: str, number: int, table: dict[str, Any], line: int) -> None:
        keys = ("when", *RULES[kind])
        for key, value in table.items():
            where = line_prefix(self.lines.find(Position(kind, number, key)) or line)
            if key not in keys:
                raise unknown(f"key of [[{kind}]]", key, keys, where=where)
            if not _has_right_type(key, value):
                raise SteptimeError(
                    f"{where}{key} is written so: {key} = {EXAMPLES[key]}; found {value!r}."
                )
        if kind == "override" and not set(table) & set(RULES[kind]):
            raise SteptimeError(
                f"{line_prefix(line)}[[override]] needs set, cases or sweep, "
                f"for example: set = {EXAMPLES['set']}."
            )
        if kind == "exclude":
            for key in keys:
                if key not in table:
                    example = f"{key} = {EXAMPLES[key]}"
                    raise SteptimeError(
                        f"{line_prefix(line)}[[{kind}]] needs {key}, for example: {example}."
                    )

    def _section(self, position: Position, content: dict[str, Any]) -> dict[str, Value]:
        """A part of a rule, written as a table of its own or inside the rule."""
        table = f"{position.table}.{position.key}"
        nearby = _around(position)
        values = {}
        for key, raw in content.items():
            values[key] = self._value(raw, Position(table, position.number, key), *nearby)
        return values

    def _case(self, position: Position, content: dict[str, Any], index: int) -> dict[str, Value]:
        """One of several cases of a rule. Cases inside the rule are located by their tokens."""
        table = f"{position.table}.{position.key}.{index}"
        nearby = _around(position)
        values = {}
        for key, raw in content.items():
            line = self.lines.find(Position(table, position.number, key))
            line = line or self.lines.find(*nearby, token=raw)
            if isinstance(raw, list):
                raw = [Value(element, line) for element in raw]
            values[key] = Value(raw, line)
        return values

    def _value(self, raw: Any, *positions: Position) -> Value:
        if isinstance(raw, list):
            raw = [Value(element, self.lines.find(*positions, token=element)) for element in raw]
        return Value(raw, self.lines.find(*positions))


def _around(position: Position) -> tuple[Position, ...]:
    """Where to look next: the part of the rule, the rule, the first mention of its kind."""
    return position, position._replace(key=""), Position("", key=position.table)


def _has_right_type(key: str, value: Any) -> bool:
    """Whether this can be such a part of a rule at all."""
    if key == "cases":
        is_list = isinstance(value, list) and bool(value)
        return is_list and all(isinstance(case, dict) for case in value)
    if key == "reason":
        return isinstance(value, str) and bool(value)
    if key == "when" and isinstance(value, str):
        return "${" in value
    return isinstance(value, dict) and bool(value)
