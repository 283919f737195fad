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


def test_warm_and_drop_change_resident_share(file: int) -> None:
    pages.warm(file)
    assert pages.resident_share([file]) == 1.0
    assert pages.drop(file)
    if pages.resident_share([file]) == 1.0:
        pytest.skip("the tests' folder lies on a file system that keeps its pages")
    assert pages.resident_share([file]) == 0.0


def test_drop_of_consecutive_ranges_leaves_no_gaps(file: int) -> None:
    pages.warm(file)
    step = 100_003
    for first in range(0, SIZE, step):
        pages.drop(file, first, min(step, SIZE - first))
    share = pages.resident_share([file])
    if share == 1.0:
        pytest.skip("the tests' folder lies on a file system that keeps its pages")
    assert share is not None and share < 0.01


def test_drop_has_no_effect_in_memory_file_system() -> None:
    if not Path("/dev/shm").is_dir():
        pytest.skip("this machine has no /dev/shm")
    with tempfile.TemporaryFile(dir="/dev/shm", buffering=0) as file:
        file.write(b"x" * 100_000)
        pages.drop(file.fileno())
        assert pages.resident_share([file.fileno()]) == 1.0


def test_resident_share_of_nothing_is_none(tmp_path: Path) -> None:
    with (tmp_path / "empty").open("wb") as file:
        assert pages.resident_share([file.fileno()]) is None
    assert pages.resident_share([]) is None


@pytest.mark.parametrize(
    "share, state", [(0.0, "cold"), (0.5, "partial"), (1.0, "warm"), (None, "unknown")]
)
def test_cache_state_names_a_share(share: float | None, state: str) -> None:
    assert pages.cache_state(share) == state


def test_drop_returns_false_if_refused() -> None:
    read, write = os.pipe()
    assert not pages.drop(read)
    os.close(read)
    os.close(write)
