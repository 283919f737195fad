from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steptime.core.accuracy import NoAccuracy
from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.core.job import Job
from steptime.core.measurement import Measurement
from steptime.core.record import Failure
from steptime.store.atomic import NotWritten
from steptime.store.journal import InvalidRecord, Journal, close_failed, is_running, uuid7
from steptime.store.reader import read

CRASH = Failure(cause=Cause.CRASHED, reason="It was killed.", output="last words")


@pytest.fixture
def disk_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """A disk on which a file grows to so many bytes and no further.

    The worker's tests set a real limit, which would also hold for what these tests print."""
    write = os.write

    def limit(size: int) -> None:
        def full(file: int, text: bytes) -> int:
            if (room := size - os.fstat(file).st_size) <= 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return write(file, text[:room])

        monkeypatch.setattr(os, "write", full)

    return limit


def test_uuid7_sorts_by_time() -> None:
    made = [uuid7() for _ in range(100)]
    assert sorted(name[:18] for name in made) == [name[:18] for name in made]
    assert len(set(made)) == 100 and all(name[14] == "7" for name in made)


def test_journal_never_replaces_another(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text("precious")
    with pytest.raises(NotWritten, match="File exists"):
        Journal(path)
    assert path.read_text() == "precious"


def test_measurement_reads_back_equal(
    keep: Callable[[Job], Path], make_job: Callable[..., Job], measurement: Measurement
) -> None:
    job = make_job(environment={"PYTHONHASHSEED": "7"}, pair="duel")
    attempt = read(keep(job))
    assert attempt is not None and attempt.measurement == measurement
    assert (attempt.id, attempt.case, attempt.protocol, attempt.pair) == (
        job.id,
        job.case,
        job.protocol,
        "duel",
    )
    assert attempt.environment == {"PYTHONHASHSEED": "7"} and attempt.network == {
        "fingerprint": "f"
    }


def test_journal_lines_are_json_with_their_name(
    keep: Callable[[Job], Path], make_job: Callable[..., Job]
) -> None:
    kinds = [json.loads(line)["line"] for line in keep(make_job()).read_text().splitlines()]
    assert kinds == ["begin", "context", "sample", "sample", "end"]


def test_close_failed_ends_an_open_journal(tmp_path: Path, make_job: Callable[..., Job]) -> None:
    path = tmp_path / "a.jsonl"
    with Journal(path) as journal:
        journal.begin(make_job())
    close_failed(path, make_job(), CRASH)
    attempt = read(path)
    assert attempt is not None and attempt.failure == CRASH and attempt.ended


@pytest.mark.parametrize(
    "left", [None, "", '{"line":"beg'], ids=["no file", "empty file", "torn line"]
)
def test_close_failed_writes_an_attempt_that_never_began(
    left: str | None, tmp_path: Path, make_job: Callable[..., Job]
) -> None:
    path, job = tmp_path / "a.jsonl", make_job()
    if left is not None:
        path.write_text(left)
    close_failed(path, job, CRASH)
    attempt = read(path)
    assert attempt is not None and (attempt.id, attempt.failure) == (job.id, CRASH)


def test_is_running_tells_a_living_writer_from_a_dead_one(
    tmp_path: Path, make_job: Callable[..., Job]
) -> None:
    path = tmp_path / "a.jsonl"
    with Journal(path) as journal:
        journal.begin(make_job())
        assert is_running(path) and read(path) is None
    assert not is_running(path) and read(path) is not None


def test_journal_explains_a_full_disk_and_keeps_earlier_lines(
    tmp_path: Path,
    make_job: Callable[..., Job],
    measurement: Measurement,
    disk_of: Callable[[int], None],
) -> None:
    path = tmp_path / "a.jsonl"
    with Journal(path) as journal:
        journal.begin(make_job())
        begun = path.read_bytes()
        disk_of(len(begun) + 300)
        with pytest.raises(NotWritten, match="make room"):
            journal.write_measurement(measurement)
        assert path.read_bytes() == begun
        journal.write_failure(Failure(cause=Cause.CRASHED, reason="The disk is full."))
    attempt = read(path)
    assert (
        attempt is not None
        and attempt.failure is not None
        and attempt.failure.reason == "The disk is full."
    )


def test_close_failed_explains_a_full_disk(
    tmp_path: Path, make_job: Callable[..., Job], disk_of: Callable[[int], None]
) -> None:
    disk_of(10)
    with pytest.raises(NotWritten, match="Finished results are safe"):
        close_failed(tmp_path / "a.jsonl", make_job(), CRASH)


def test_write_measurement_refuses_low_precision_without_accuracy_loss(
    tmp_path: Path, make_job: Callable[..., Job], measurement: Measurement
) -> None:
    path = tmp_path / "a.jsonl"
    with Journal(path) as journal:
        journal.begin(make_job(case=Case(workload="mnist-mlp", precision="bf16")))
        begun = path.read_bytes()
        with pytest.raises(NoAccuracy, match="needs its accuracy part"):
            journal.write_measurement(measurement, {"accuracy": {"samples": 8}})
        assert path.read_bytes() == begun


def test_write_measurement_keeps_the_accuracy_loss(
    tmp_path: Path,
    make_job: Callable[..., Job],
    measurement: Measurement,
    accuracy_loss: dict[str, Any],
) -> None:
    path = tmp_path / "a.jsonl"
    with Journal(path) as journal:
        journal.begin(make_job(case=Case(workload="mnist-mlp", precision="bf16")))
        journal.write_measurement(measurement, {"accuracy": accuracy_loss})
    attempt = read(path)
    assert (
        attempt is not None
        and attempt.measurement == measurement
        and attempt.findings["accuracy"] == accuracy_loss
    )


def test_write_findings_refuses_what_no_reader_takes(
    tmp_path: Path, make_job: Callable[..., Job]
) -> None:
    path = tmp_path / "a.jsonl"
    with Journal(path) as journal:
        journal.begin(make_job())
        begun = path.read_bytes()
        with pytest.raises(InvalidRecord, match=r"end\.findings\.exchange must be"):
            journal.write_findings({"exchange": 3})
        assert path.read_bytes() == begun
        journal.write_failure(CRASH)
    attempt = read(path)
    assert attempt is not None and attempt.failure == CRASH


def test_write_failure_cuts_a_very_long_reason(
    tmp_path: Path, make_job: Callable[..., Job]
) -> None:
    path = tmp_path / "a.jsonl"
    with Journal(path) as journal:
        journal.begin(make_job())
        journal.write_failure(Failure(cause=Cause.CRASHED, reason="x" * 3_000_000))
    attempt = read(path)
    assert attempt is not None and attempt.failure is not None
    assert len(attempt.failure.reason) == 1_000_000
