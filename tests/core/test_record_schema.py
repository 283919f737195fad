from __future__ import annotations

from typing import Any

import pytest

from steptime.core.record_schema import BEGIN, IMPORTED_ROW, line_problem
from steptime.core.schema import MOST_DEPTH

LINE: dict[str, Any] = {
    "line": "begin",
    "schema": "steptime/2",
    "id": "0",
    "session": "s",
    "plan": "p",
    "process": 0,
    "case": {"workload": "lenet5"},
    "protocol": {},
    "environment": {},
    "pair": "",
    "started": "2026-01-01T00:00:00+00:00",
}


def nest(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


def test_line_problem_is_empty_for_a_valid_line() -> None:
    assert line_problem(LINE) == ""


@pytest.mark.parametrize("name", BEGIN.required)
def test_line_problem_names_what_is_missing(name: str) -> None:
    line = {key: value for key, value in LINE.items() if key != name}
    assert line_problem(line) == f"begin.{name} is missing"


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("session", [], "begin.session must be text, found []"),
        ("session", "", "begin.session must have 1 to 200 characters, found 0"),
        ("session", "a\0b", r"begin.session must have no control characters, found 'a\x00b'"),
        ("plan", "\ud800", "begin.plan must have no half of a surrogate pair"),
        ("process", -1, "begin.process must be a whole number of at least 0, found -1"),
        ("process", True, "begin.process must be a whole number"),
        ("process", 10**40, "begin.process must be a whole number of at most 2147483647"),
        ("started", "yesterday", "begin.started must be a date"),
        ("started", "2026-13-01T00:00:00Z", "begin.started must be a date"),
        ("started", "2026-01-01", "begin.started must be a date"),
        ("environment", {"slurm": 1}, "begin.environment.slurm must be an object, found 1"),
        ("options", {"x": nest(MOST_DEPTH + 1)}, "begin.options.x"),
        ("later", {"x": "\ud800"}, "begin.later.x must have no half of a surrogate pair"),
        ("later", 2**64, "begin.later must be a whole number of at most"),
    ],
)
def test_line_problem_names_a_value_of_another_kind(name: str, value: Any, sentence: str) -> None:
    assert line_problem({**LINE, name: value}).startswith(sentence)


@pytest.mark.parametrize("line", [[], 3, {}, {"line": []}])
def test_line_problem_refuses_what_is_no_line(line: Any) -> None:
    assert line_problem(line)


def test_line_problem_takes_names_of_later_versions() -> None:
    assert line_problem({**LINE, "later": {"a": [1, None, "x", float("nan")]}}) == ""
    assert line_problem({"line": "later", "a": 1}) == ""


def test_line_problem_misses_the_count_of_the_unit() -> None:
    network = {"unit": "tokens", "units_per_step": {"images": 32}}
    problem = line_problem({"line": "context", "network": network})
    assert problem == "context.network.units_per_step.tokens is missing"


def test_line_problem_names_columns_of_several_lengths() -> None:
    monitor = {"columns": {"seconds": [1, 2], "cpu_seconds": [1]}}
    line = {"line": "end", "ended": LINE["started"], "measurement": None, "failure": None}
    problem = line_problem({**line, "findings": {"monitor": monitor}})
    assert problem.startswith("end.findings.monitor.columns must have columns of one length")


def test_imported_row_needs_its_origin() -> None:
    row = {"source": "s", "original": "o", "file": "f", "location": "row 1"}
    assert IMPORTED_ROW.problem(row, "row") == ""
    assert IMPORTED_ROW.problem({**row, "defects": "x"}, "row") == (
        "row.defects must be a list, found 'x'"
    )
    del row["location"]
    assert IMPORTED_ROW.problem(row, "row") == "row.location is missing"
