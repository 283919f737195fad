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


def test_every_part_knows_its_line() -> None:
    document = parse(TEXT)
    first, second = document.rules["override"]
    assert (first.line, first.when["phase"].line, first.set["threads"].line) == (7, 8, 10)
    assert (second.line, second.when["mode"].line, second.set["threads"].line) == (12, 13, 17)
    assert [value.line for value in second.when["mode"].raw] == [14, 15]
    assert document.tables["constants"]["seed"].line == 5
    assert document.tables["sweep"]["batch_size"].line == 2


def test_each_of_several_cases_is_found_by_its_words() -> None:
    rule = '[[override]]\ncases = [\n  { mode = "eager", threads = 8, weights = "a b.x" }, # one\n  { threads=9 },\n]\n'
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


def test_ten_times_as_many_values_take_about_ten_times_as_long() -> None:
    assert read_seconds(6_000) < 30 * read_seconds(600)


def test_a_word_that_is_nowhere_has_no_line() -> None:
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
def test_what_would_take_for_ever_is_refused_at_once(text: str, message: str) -> None:
    with pytest.raises(SteptimeError, match=message):
        parse(text)


def test_many_numbers_with_a_point_are_no_deep_key() -> None:
    assert parse(f"[variables]\nshares = {[0.5] * 2000}").tables["variables"]["shares"].line == 2


def test_the_mark_that_some_editors_begin_a_file_with_is_passed_over() -> None:
    assert parse('\ufeffname = "x"').texts["name"].raw == "x"
