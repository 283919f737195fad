"""Files stored once under the SHA-256 of their content: traces, logs, originals of imports."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from steptime.core.errors import SteptimeError
from steptime.store.atomic import atomic_write, explain_write_errors
from steptime.store.files import open_file, read_bytes

MISNAMED = "its content does not match its name"


class Blobs:
    """The folder `blobs` of a store. Any number of writers may write the same blob."""

    def __init__(self, store: Path) -> None:
        self.folder = store / "blobs"

    def path(self, sha256: str) -> Path:
        return self.folder / sha256[:2] / sha256

    def put(self, content: bytes | Path, *, sync: bool = True) -> str:
        """Store the content and return its name.

        It is safe on the disk when this returns, unless the caller synchronises many at once."""
        with explain_write_errors(
            f"The store {self.folder.parent}", "Choose another folder with --store."
        ):
            sha256 = sha256_of(content)
            # A damaged blob is written again.
            if not self.is_intact(sha256):
                with atomic_write(self.path(sha256), sync=sync) as draft:
                    _copy(content, draft, sha256)
        return sha256

    def get(self, sha256: str) -> bytes:
        path = self.path(sha256)
        try:
            return read_bytes(path)
        except OSError as problem:
            raise SteptimeError(f"{path} cannot be read: {problem.strerror}.") from None

    def is_intact(self, sha256: str) -> bool:
        path = self.path(sha256)
        return path.is_file() and sha256_of(path) == sha256

    def names(self) -> Iterator[str]:
        """All blobs but drafts, whose names begin with a dot."""
        for path in sorted(self.folder.glob("*/*")):
            if not path.name.startswith("."):
                yield path.name

    def check(self) -> list[str]:
        """One sentence for each blob whose content does not match its name."""
        advice = "import or merge the original again to repair it."
        damaged = [name for name in self.names() if not self.is_intact(name)]
        return [f"{self.path(name)}: {MISNAMED}; {advice}" for name in damaged]


def _copy(content: bytes | Path, draft: Path, sha256: str) -> None:
    if isinstance(content, bytes):
        draft.write_bytes(content)
        return
    shutil.copyfile(content, draft)
    if sha256_of(draft) != sha256:
        raise SteptimeError(
            f"{content} changed while it was copied. Try again when no process writes it."
        )


def sha256_of(content: bytes | Path) -> str:
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    with open_file(content) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
