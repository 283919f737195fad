"""Real journals, each changed in one way. Unchanged ones must pass."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steptime.store import parts
from steptime.store.check import check
from steptime.store.compaction import compact
from steptime.store.folder import FolderStore
from steptime.store.journal import uuid7

pytest.importorskip("duckdb")
REAL = Path(__file__).parents[1] / "fixtures" / "real-store" / "parts"
Lines = list[dict[str, Any]]


def real_texts() -> list[str]:
    (path,) = REAL.glob("*.parquet")
    return list(parts.texts(path, task="measure").values())


def parse(text: str) -> Lines:
    return [json.loads(line) for line in text.splitlines()]


def write(store: FolderStore, lines: Lines) -> Path:
    path = store.journal(lines[0]["id"])
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


@pytest.fixture(scope="module")
def real_journals() -> list[Lines]:
    """Those with samples, of one session and case with several processes, shortest first."""
    journals = [parse(text) for text in real_texts()]
    measured = [lines for lines in journals if lines[-1]["measurement"]]
    groups: dict[str, list[Lines]] = {}
    for lines in measured:
        begin = lines[0]
        group = begin["session"] + json.dumps(begin["case"]) + begin["pair"]
        groups.setdefault(group, []).append(lines)
    return max(groups.values(), key=len)


@pytest.fixture
def lines(real_journals: list[Lines]) -> Lines:
    return json.loads(json.dumps(real_journals[0]))  # type: ignore[no-any-return]


def first_block(lines: Lines) -> dict[str, Any]:
    return next(line for line in lines if line["line"] == "sample")


def change_delta(lines: Lines) -> None:
    first_block(lines)["deltas"][0] += 50_000


def change_host_time(lines: Lines) -> None:
    block = first_block(lines)
    block["host_ns"] = 2 * block["host_ns"]


def halve_all_samples(lines: Lines) -> None:
    for line in lines:
        if line["line"] == "sample":
            line["deltas"] = [delta // 2 for delta in line["deltas"]]
            line["device_ns"] = None


def turn_a_stamp_back(lines: Lines) -> None:
    deltas = first_block(lines)["deltas"]
    deltas[1] += deltas[0] + 5
    deltas[0] = -5


def end_before_start(lines: Lines) -> None:
    lines[0]["started"], lines[-1]["ended"] = lines[-1]["ended"], lines[0]["started"]


def live_shortly(lines: Lines) -> None:
    lines[-1]["ended"] = lines[0]["started"]
    for line in lines:
        if line["line"] == "sample":
            line["idle_ns"] += 10**10


def cut_everything(lines: Lines) -> None:
    lines[-1]["measurement"]["cut"] = lines[-1]["measurement"]["samples"]


def use_negative_cpu_time(lines: Lines) -> None:
    first_block(lines)["cpu_ns"] = -1


def dispatch_longer_than_the_block(lines: Lines) -> None:
    block = first_block(lines)
    block["dispatch_ns"] = block["host_ns"] + 1


def exceed_full_pressure(lines: Lines) -> None:
    first_block(lines)["pressure"] = 1.5


def let_the_device_work_longer(lines: Lines) -> None:
    for line in lines:
        if line["line"] == "sample":
            line["device_ns"] = [2 * delta for delta in line["deltas"]]


def add_a_rank(lines: Lines) -> None:
    samples = lines[-1]["measurement"]["samples"]
    rank = {"rank": 5, "node": "n", "stamps": 0, "deltas": [1] * samples, "device_ns": None}
    rank |= {"idle_ns": [], "cpu_ns": 1, "queue_ns": None, "cut": 0, "steady": True}
    lines[-1]["measurement"]["ranks"] = [rank | {"offset_ns": [0, 0]}]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (change_delta, "the samples of block 0 add up to"),
        (change_host_time, "its host_ns is"),
        (halve_all_samples, "the samples of block 0 add up to"),
        (turn_a_stamp_back, "its stamps go backwards"),
        (end_before_start, "before it started"),
        (live_shortly, "the process lived"),
        (cut_everything, "warm-up ends at sample"),
        (use_negative_cpu_time, "cpu_ns -1, below 0"),
        (dispatch_longer_than_the_block, "outside 0 … host_ns"),
        (exceed_full_pressure, "pressure 1.5 outside"),
        (let_the_device_work_longer, "the device worked"),
        (add_a_rank, "it has the ranks [5]"),
    ],
)
def test_check_reports_a_journal_that_contradicts_itself(
    store: FolderStore, lines: Lines, change: Callable[[Lines], None], sentence: str
) -> None:
    path = write(store, lines)
    assert check(store).wrong == []
    change(lines)
    write(store, lines)
    problems = check(store).wrong
    assert len(problems) == 1
    assert problems[0].startswith(f"{path}: ") and sentence in problems[0]
    assert "measure again" in problems[0]


def test_check_reports_a_contradiction_inside_a_part(store: FolderStore, lines: Lines) -> None:
    change_delta(lines)
    write(store, lines)
    compact(store)
    (problem,) = check(store).wrong
    assert ".parquet" in problem and lines[0]["id"] in problem


def test_check_accepts_all_real_journals(store: FolderStore, real_journals: list[Lines]) -> None:
    assert len(real_journals) > 1
    for lines in real_journals:
        write(store, lines)
    assert check(store).wrong == []


def test_check_reports_a_journal_under_another_name(store: FolderStore, lines: Lines) -> None:
    path = write(store, lines)
    copy = path.with_name(f"{uuid7()}.jsonl")
    path.rename(copy)
    (problem,) = check(store).wrong
    assert problem.startswith(f"{copy}: ") and "a copy or renamed" in problem


@pytest.mark.parametrize("compacted", [False, True])
def test_check_reports_a_copy_beside_its_original(
    store: FolderStore, lines: Lines, compacted: bool
) -> None:
    path = write(store, lines)
    text = path.read_text()
    if compacted:
        compact(store)
    copy = path.with_name(f"{uuid7()}.jsonl")
    copy.write_text(text)
    problems = check(store).wrong
    assert any(str(copy) in problem for problem in problems)


def test_check_reports_the_same_name_on_another_day(store: FolderStore, lines: Lines) -> None:
    path = write(store, lines)
    copy = path.parent.parent / "31" / path.name
    copy.parent.mkdir()
    shutil.copy(path, copy)
    (problem,) = check(store).wrong
    assert "a copy of" in problem


@pytest.mark.parametrize("compacted", [False, True])
def test_check_reports_the_same_samples_under_a_new_id(
    store: FolderStore, lines: Lines, compacted: bool
) -> None:
    write(store, lines)
    if compacted:
        compact(store)
    original = lines[0]["id"]
    lines[0]["id"] = uuid7()
    lines[0]["process"] = 77
    path = write(store, lines)
    (problem,) = check(store).wrong
    assert problem.startswith(f"{path}: ") or original in problem
    assert "same samples" in problem


def test_check_reports_two_processes_of_one_number(
    store: FolderStore, real_journals: list[Lines]
) -> None:
    first, second = (json.loads(json.dumps(lines)) for lines in real_journals[:2])
    second[0]["process"] = first[0]["process"]
    write(store, first)
    write(store, second)
    (problem,) = check(store).wrong
    assert f"process {first[0]['process']} of its case and session" in problem


def test_check_reports_mixed_machines_in_a_session(
    store: FolderStore, real_journals: list[Lines]
) -> None:
    first, second = (json.loads(json.dumps(lines)) for lines in real_journals[:2])
    second[1]["machine"]["fingerprint"] = "0123456789ab"
    write(store, first)
    write(store, second)
    (problem,) = check(store).wrong
    assert "0123456789ab" in problem and first[1]["machine"]["fingerprint"] in problem


def test_check_accepts_several_node_types_in_a_session(
    store: FolderStore, real_journals: list[Lines]
) -> None:
    first, second = (json.loads(json.dumps(lines)) for lines in real_journals[:2])
    second[1]["machine"]["fingerprint"] = "0123456789ab"
    second[0]["case"]["node_type"] = "large"
    write(store, first)
    write(store, second)
    assert check(store).wrong == []


def test_check_survives_values_of_another_type(store: FolderStore, lines: Lines) -> None:
    lines[0]["started"] = "yesterday"
    write(store, lines)
    (problem,) = check(store).wrong
    assert "set aside (line 1: begin.started must be a date such as" in problem
