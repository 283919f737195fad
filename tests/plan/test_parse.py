"""Where words stand: tables, tables of tables, inline tables, lists over several lines."""

from __future__ import annotations

import time

import pytest

from steptime.core.errors import SteptimeError
from steptime.plan.parse import MOST_CHARACTERS, Lines, Position, parse

TEXT = """\
name = "x"  # the first line
sweep.batch_size = [1]

[constants]
"seed" = 3

[[override]]
when = { phase = "training" }
[override.set]
threads = 2

[[override]] # the second
when = { mode = [
    "eager",
    "graph",
] }
set = { threads = 1 }
"""


def test_parse_keeps_the_line_of_every_value() -> None:
    document = parse(TEXT)
    first, second = document.rules["override"]
    assert (first.line, first.when["phase"].line, first.set["threads"].line) == (7, 8, 10)
    assert (second.line, second.when["mode"].line, second.set["threads"].line) == (12, 13, 17)
    assert [value.line for value in second.when["mode"].raw] == [14, 15]
    assert document.tables["constants"]["seed"].line == 5
    assert document.tables["sweep"]["batch_size"].line == 2


def test_parse_finds_the_line_of_each_case() -> None:
    rule = (
        "[[override]]\n"
        "cases = [\n"
        '  { mode = "eager", threads = 8, weights = "a b.x" }, # one\n'
        "  { threads=9 },\n"
        "]\n"
    )
    (found,) = parse(rule).rules["override"]
    assert [{name: value.line for name, value in case.items()} for case in found.cases] == [
        {"mode": 3, "threads": 3, "weights": 3},
        {"threads": 4},
    ]


def read_seconds(count: int) -> float:
    """For so many values, each on a line of its own."""
    began = time.process_time()
    document = parse(
        "[sweep]\nbatch_size = [\n" + "".join(f"{number},\n" for number in range(count)) + "]\n"
    )
    assert [value.line for value in document.tables["sweep"]["batch_size"].raw] == list(
        range(3, 3 + count)
    )
    return time.process_time() - began


def test_parse_takes_linear_time() -> None:
    assert read_seconds(6_000) < 30 * read_seconds(600)


def test_find_is_zero_for_a_missing_key() -> None:
    assert Lines(TEXT).find(Position("sweep", key="layout")) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = " + "[" * 100_000, "nested too deeply"),
        ("name = " + "{a=" * 100_000, "nested too deeply"),
        (".".join(["a"] * 50_000) + " = 1", "more than 1000 dots"),
        (f"[{'.'.join(['a'] * 50_000)}]", "more than 1000 dots"),
        ("#" * (MOST_CHARACTERS + 1), "at most 1,000,000 characters, found 1,000,001"),
    ],
)
def test_parse_refuses_what_would_take_forever(text: str, message: str) -> None:
    with pytest.raises(SteptimeError, match=message):
        parse(text)


def test_parse_accepts_many_decimal_points() -> None:
    assert parse(f"[variables]\nshares = {[0.5] * 2000}").tables["variables"]["shares"].line == 2


def test_parse_skips_a_byte_order_mark() -> None:
    assert parse('\ufeffname = "x"').texts["name"].raw == "x"
