"""Files kept by their content: traces, logs, originals of imports. The same content is kept once, under its SHA-256."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from steptime.core.errors import SteptimeError
from steptime.store.atomic import atomic_write, explain_write_errors


class Blobs:
    """Below `blobs` of a store's folder. A file appears whole or not at all; any number of writers may write it."""

    def __init__(self, store: Path) -> None:
        self.folder = store / "blobs"

    def path(self, sha256: str) -> Path:
        return self.folder / sha256[:2] / sha256

    def put(self, content: bytes | Path, *, sync: bool = True) -> str:
        """The content's name. Safe on the disk when this returns, unless the caller synchronises many at once."""
        with explain_write_errors(
            f"The store {self.folder.parent}", "Choose another folder with --store."
        ):
            sha256 = sha256_of(content)
            if not self.is_whole(sha256):
                with atomic_write(self.path(sha256), sync=sync) as draft:
                    _copy(content, draft, sha256)
        return sha256

    def get(self, sha256: str) -> bytes:
        try:
            return self.path(sha256).read_bytes()
        except OSError as problem:
            raise SteptimeError(
                f"{self.path(sha256)} cannot be read: {problem.strerror}."
            ) from None

    def is_whole(self, sha256: str) -> bool:
        path = self.path(sha256)
        return path.is_file() and sha256_of(path) == sha256

    def names(self) -> Iterator[str]:
        """All that are there; a dot begins the name of a draft."""
        for path in sorted(self.folder.glob("*/*")):
            if not path.name.startswith("."):
                yield path.name

    def check(self) -> list[str]:
        """A sentence for each that does not have the content of its name."""
        return [
            f"{self.path(name)}: its content is not what its name says; importing or merging the original mends it."
            for name in self.names()
            if not self.is_whole(name)
        ]


def _copy(content: bytes | Path, draft: Path, sha256: str) -> None:
    if isinstance(content, bytes):
        draft.write_bytes(content)
        return
    shutil.copyfile(content, draft)
    if sha256_of(draft) != sha256:
        raise SteptimeError(
            f"{content} changed while it was copied. Try again when nobody writes it."
        )


def sha256_of(content: bytes | Path) -> str:
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    with content.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
