"""Where words stand: tables, tables of tables, inline tables, lists over several lines."""

from __future__ import annotations

from steptime.core.plan_text import Lines, parse

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


def test_a_word_that_is_nowhere_has_no_line() -> None:
    assert Lines(TEXT).of(("sweep", 0, "layout")) == 0
