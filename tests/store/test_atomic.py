"""Atomic writes: the complete file or none, and no draft left."""

from __future__ import annotations

from pathlib import Path

import pytest

from steptime.store.atomic import (
    NotWritten,
    atomic_write,
    create_file,
    explain_write_errors,
    remove_drafts,
)


def test_atomic_write_makes_the_folder_and_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "file"
    with atomic_write(path) as draft:
        draft.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new"
    assert list(path.parent.iterdir()) == [path]


def test_atomic_write_keeps_the_old_file_if_the_writer_fails(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(RuntimeError), atomic_write(path) as draft:
        draft.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_create_file_never_replaces_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    create_file(path, b"first")
    with pytest.raises(FileExistsError):
        create_file(path, b"second")
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def test_remove_drafts_removes_only_those_of_the_file(tmp_path: Path) -> None:
    (tmp_path / ".a[1].7.draft").write_text("")
    other = tmp_path / ".b.7.draft"
    other.write_text("")
    remove_drafts(tmp_path / "a[1]")
    assert list(tmp_path.iterdir()) == [other]


def test_explain_write_errors_names_the_target_and_the_advice() -> None:
    with pytest.raises(NotWritten) as caught, explain_write_errors("The file x", "Make room."):
        raise OSError(28, "No space left on device")
    assert str(caught.value) == "The file x cannot be written: No space left on device. Make room."
