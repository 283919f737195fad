"""Files that exist only in a test, with their neighbours, and all files of the shared data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from steptime import formats
from steptime.core.foreign import ForeignRun
from steptime.formats import Original, Reading

RESULTS = Path(__file__).parents[2] / ".." / "shared" / "data" / "results"


def original(
    name: str, content: str | bytes, neighbours: dict[str, str | bytes] | None = None
) -> Original:
    """Neighbours by their path from the file's folder."""
    around = {
        key: value.encode() if isinstance(value, str) else value
        for key, value in (neighbours or {}).items()
    }
    data = content.encode() if isinstance(content, str) else content
    return Original(name, data, name, beside=around.get)


def reading(
    name: str, content: str | bytes, neighbours: dict[str, str | bytes] | None = None
) -> Reading:
    found = formats.read(original(name, content, neighbours))
    assert not found.broken, found.broken
    return found


@pytest.fixture(scope="session")
def make() -> Callable[..., Original]:
    return original


@pytest.fixture(scope="session")
def read() -> Callable[..., Reading]:
    """The file as a user would import it: the reader is found from its content."""
    return reading


@pytest.fixture(scope="session")
def real_files() -> list[Original]:
    if not RESULTS.exists():
        pytest.skip("../shared/data/results is not here")
    return [
        _real(path)
        for path in sorted(RESULTS.rglob("*"))
        if path.is_file() and path.name != "INDEX.tsv"
    ]


def _real(path: Path) -> Original:
    def beside(relative: str) -> bytes | None:
        neighbour = path.parent / relative
        return neighbour.read_bytes() if neighbour.is_file() else None

    name = path.relative_to(RESULTS).as_posix()
    return Original(name, path.read_bytes(), name, beside=beside)


@pytest.fixture(scope="session")
def readings(real_files: list[Original]) -> dict[str, Reading]:
    """By the file's name. Reading all of them takes some seconds, so it is done once."""
    return {file.name: formats.read(file) for file in real_files}


@pytest.fixture(scope="session")
def real_runs(readings: dict[str, Reading]) -> list[ForeignRun]:
    return [run for found in readings.values() for run in found.runs]
