"""Write files atomically: a reader sees the complete file or none. Nothing here knows contents."""

from __future__ import annotations

import contextlib
import glob
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from steptime.core.errors import SteptimeError
from steptime.store.permissions import file_mode, make_folder, open_private

SAFE = (
    "Finished results are safe; make room or choose another folder with --store, "
    "and run again to continue."
)


class NotWritten(SteptimeError):
    """The disk is full, read-only or gone."""


@contextlib.contextmanager
def explain_write_errors(target: str, advice: str = SAFE) -> Iterator[None]:
    """Turn an OSError into one sentence that names the target and says what to do."""
    try:
        yield
    except OSError as problem:
        raise NotWritten(f"{target} cannot be written: {problem.strerror}. {advice}") from problem


@contextlib.contextmanager
def atomic_write(path: Path, *, sync: bool = True, private: bool = True) -> Iterator[Path]:
    """Yield a draft to write; it replaces `path` at the end of the block.

    With `sync` the file then survives a crash of the machine. Without it the caller may
    synchronise many files at once. A killed writer leaves a draft, which no reader opens
    because its name begins with a dot. A `private` file has the permissions of a store.
    """
    # A new folder must survive too, so the folder that holds its name is synchronised.
    folders = {path.parent}
    for folder in path.parents:
        if not folder.exists():
            folders.add(folder.parent)
    if private:
        make_folder(path.parent)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        if private:
            # It exists before anything is written, so that nobody else ever reads it.
            os.close(open_private(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
        yield draft
        if private:
            _restrict(draft)
        if sync:
            fsync(draft)
        draft.replace(path)
        if sync:
            for folder in folders:
                fsync(folder)
    finally:
        draft.unlink(missing_ok=True)


def _restrict(draft: Path) -> None:
    """The caller may have put another file in the draft's place."""
    # Some file systems have no modes.
    with contextlib.suppress(PermissionError):
        draft.chmod(file_mode())


def remove_drafts(path: Path) -> None:
    """Remove what killed writers of `path` left. No other writer may be at work."""
    for draft in path.parent.glob(f".{glob.escape(path.name)}.*.draft"):
        draft.unlink(missing_ok=True)


def create_file(path: Path, content: bytes) -> None:
    """Write a file that must not exist yet; two writers cannot both succeed.

    Raises FileExistsError. The file is complete and on the disk if this returns."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.draft")
    try:
        with open(draft, "xb", opener=open_private) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # Unlike a rename, a link never replaces an existing file.
        os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def fsync(path: Path) -> None:
    """Force a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
