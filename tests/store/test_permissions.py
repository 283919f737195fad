"""A store is its owner's unless the owner shares it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from steptime.core.errors import SteptimeError
from steptime.core.job import Job
from steptime.store.compaction import compact
from steptime.store.folder import FolderStore
from steptime.store.permissions import make_folder, write_private

Keep = Callable[[Job], Path]
MakeJob = Callable[..., Job]


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> set[str]:
    paths = [folder, *folder.rglob("*")]
    return {
        f"{'folder' if path.is_dir() else 'file'} {path.stat().st_mode & 0o777:o}" for path in paths
    }


def test_store_files_are_readable_by_their_owner_only(
    keep: Keep, make_job: MakeJob, store: FolderStore
) -> None:
    keep(make_job())
    with store.hold("p"):
        pass
    assert modes(store.path) == {"folder 700", "file 600"}


def test_parts_are_readable_by_their_owner_only(outcomes: FolderStore) -> None:
    pytest.importorskip("duckdb")
    compact(outcomes)
    assert modes(outcomes.path / "parts") == {"folder 700", "file 600"}


def test_umask_variable_shares_new_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPTIME_UMASK", "007")
    make_folder(tmp_path / "a" / "b")
    write_private(tmp_path / "a" / "b" / "c", "x")
    assert modes(tmp_path / "a") == {"folder 770", "file 660"}


@pytest.mark.parametrize("text", ["x", "777", "-1", "8"])
def test_umask_variable_out_of_range_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("STEPTIME_UMASK", text)
    with pytest.raises(SteptimeError, match=r"STEPTIME_UMASK is .* octal number from 000 to 077"):
        make_folder(tmp_path / "a")
