from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from steptime.data import pages

SIZE = 9 << 20


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    """On the disk, if the tests' folder is on one."""
    with (tmp_path / "data").open("w+b") as out:
        out.write(os.urandom(SIZE))
        out.flush()
        os.fsync(out.fileno())
        yield out.fileno()


def test_what_was_read_is_in_memory_and_what_was_dropped_is_not(file: int) -> None:
    pages.warm(file)
    assert pages.resident_share([file]) == 1.0
    assert pages.drop(file)
    if pages.resident_share([file]) == 1.0:
        pytest.skip("the tests' folder lies on a file system that keeps its pages")
    assert pages.resident_share([file]) == 0.0


def test_ranges_that_follow_each_other_leave_nothing_between_them(file: int) -> None:
    pages.warm(file)
    step = 100_003
    for first in range(0, SIZE, step):
        pages.drop(file, first, min(step, SIZE - first))
    share = pages.resident_share([file])
    if share == 1.0:
        pytest.skip("the tests' folder lies on a file system that keeps its pages")
    assert share is not None and share < 0.01


def test_memory_does_not_let_go() -> None:
    if not Path("/dev/shm").is_dir():
        pytest.skip("this machine has no /dev/shm")
    with tempfile.TemporaryFile(dir="/dev/shm", buffering=0) as file:
        file.write(b"x" * 100_000)
        pages.drop(file.fileno())
        assert pages.resident_share([file.fileno()]) == 1.0


def test_nothing_has_no_share(tmp_path: Path) -> None:
    with (tmp_path / "empty").open("wb") as file:
        assert pages.resident_share([file.fileno()]) is None
    assert pages.resident_share([]) is None


@pytest.mark.parametrize(
    "share, word", [(0.0, "cold"), (0.5, "partial"), (1.0, "warm"), (None, "unknown")]
)
def test_a_share_has_a_word(share: float | None, word: str) -> None:
    assert pages.cache_state(share) == word


def test_what_can_not_be_dropped_is_said() -> None:
    read, write = os.pipe()
    assert not pages.drop(read)
    os.close(read)
    os.close(write)
