from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from mutations import real_journals, reseal, unseal
from steptime.core.cause import Cause
from steptime.core.job import Job
from steptime.core.record import Failure
from steptime.store import checksums, parts
from steptime.store.check import check
from steptime.store.compaction import compact
from steptime.store.folder import FolderStore
from steptime.store.journal import Journal, close_failed
from steptime.store.reader import parse, read

FLIPS = 200
CRASH = Failure(cause=Cause.CRASHED, reason="It was killed.")
Keep = Callable[[Job], Path]
MakeJob = Callable[..., Job]


@pytest.fixture
def path(keep: Keep, make_job: MakeJob) -> Path:
    return keep(make_job())


def flip_bit(data: bytes, rng: random.Random) -> bytes:
    flipped = bytearray(data)
    flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(flipped)


@pytest.mark.slow
def test_reader_notices_every_flipped_bit_or_reads_the_same(tmp_path: Path) -> None:
    rng = random.Random(10)
    journals = [reseal(journal) for journal in real_journals(tmp_path)]
    path = tmp_path / "a.jsonl"
    silent = 0
    for _ in range(FLIPS):
        journal = rng.choice(journals)
        problems: list[str] = []
        path.write_bytes(flip_bit(journal, rng))
        attempt = read(path, problems)
        if not problems:
            silent += 1
            assert attempt == parse(journal, path, [])
    assert silent < FLIPS / 10


@pytest.mark.slow
def test_reader_of_journals_without_checksums_misses_flipped_bits(tmp_path: Path) -> None:
    """The negative control: the test above can fail."""
    rng = random.Random(10)
    journals = real_journals(tmp_path)
    path = tmp_path / "a.jsonl"
    missed = 0
    for _ in range(FLIPS):
        journal = rng.choice(journals)
        problems: list[str] = []
        path.write_bytes(flip_bit(journal, rng))
        attempt = read(path, problems)
        missed += not problems and attempt != parse(journal, path, [])
    assert missed > FLIPS / 10


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_reader_notices_a_lost_line(path: Path, lost: int) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:lost] + lines[lost + 1 :]))
    problems: list[str] = []
    assert read(path, problems) is None
    assert f"line {lost + 1} is damaged or lines before it are missing: checksum" in problems[0]


def test_reader_notices_lines_in_another_order(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], lines[1], lines[3], lines[2], lines[4]]))
    problems: list[str] = []
    assert read(path, problems) is None and "line 3 is damaged" in problems[0]


def test_reader_notices_a_line_without_checksum_among_others(path: Path) -> None:
    first, _, rest = path.read_bytes().partition(b"\n")
    path.write_bytes(checksums.SUFFIX.sub(b"}", first) + b"\n" + rest)
    problems: list[str] = []
    assert read(path, problems) is None and "checksum" in problems[0]


def test_journal_without_checksums_reads_the_same(path: Path) -> None:
    before = read(path)
    unseal(path)
    problems: list[str] = []
    assert b"checksum" not in path.read_bytes()
    assert (read(path, problems), problems) == (before, [])


def test_close_failed_continues_the_checksums(tmp_path: Path, make_job: MakeJob) -> None:
    path = tmp_path / "a.jsonl"
    with Journal(path) as journal:
        journal.begin(make_job())
    close_failed(path, make_job(), CRASH)
    problems: list[str] = []
    attempt = read(path, problems)
    assert attempt is not None and (attempt.failure, problems) == (CRASH, [])
    assert checksums.broken_line(path.read_bytes().splitlines()) is None


def test_close_failed_continues_after_a_torn_line(tmp_path: Path, make_job: MakeJob) -> None:
    path = tmp_path / "a.jsonl"
    with Journal(path) as journal:
        journal.begin(make_job())
    with path.open("a") as file:
        file.write('{"line":"sample","deltas":[1,')
    close_failed(path, make_job(), CRASH)
    attempt = read(path)
    assert attempt is not None and attempt.failure == CRASH


def test_close_failed_ends_a_journal_without_checksums(path: Path, make_job: MakeJob) -> None:
    unseal(path)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    close_failed(path, make_job(), CRASH)
    problems: list[str] = []
    attempt = read(path, problems)
    assert attempt is not None and (attempt.failure, problems) == (CRASH, [])


def test_parts_keep_the_checksums(store: FolderStore, path: Path) -> None:
    text = path.read_text()
    compact(store)
    (part,) = store.parts.paths()
    assert list(parts.texts(part).values()) == [text]
    problems: list[str] = []
    damaged = {path.stem: text.replace('"samples":3', '"samples":2')}
    assert list(parts.stored_journals(part, damaged, problems)) == []
    assert "checksum" in problems[0]


def test_check_counts_attempts_without_checksums(
    store: FolderStore, keep: Keep, make_job: MakeJob
) -> None:
    for number in range(3):
        path = keep(make_job(process=number))
    unseal(path)
    assert (check(store).without_checksums, check(store).attempts) == (1, 3)
    compact(store)
    assert check(store).without_checksums == 1


def test_check_names_a_journal_with_a_wrong_checksum(store: FolderStore, path: Path) -> None:
    path.write_text(path.read_text().replace('"process":0', '"process":1'))
    report = check(store)
    assert report.journals["damaged"] == 1 and report.attempts == 0
    assert report.wrong[0].startswith(f"{path}: set aside (line 1 is damaged")
