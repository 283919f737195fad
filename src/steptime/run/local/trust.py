"""Which machine files of a working folder may be used: those that the user has trusted.

A machine file starts programs, and a folder may be a stranger's. A changed file must be trusted
again."""

from __future__ import annotations

import os
from pathlib import Path

from steptime.core.errors import SteptimeError
from steptime.store.atomic import atomic_write, explain_write_errors
from steptime.store.blobs import sha256_of
from steptime.store.files import read_text

LIST = "trusted-machine-files"


def settings_folder() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "steptime"


def check_trust(path: Path) -> None:
    """Raise, with what to do, if the file is not trusted."""
    if _entry(path) not in _entries():
        raise SteptimeError(
            f"The machine file {path.absolute()} starts programs and is not trusted, or it was "
            "changed since. Read it; then trust it with `steptime machine --trust`, name it with "
            f"STEPTIME_MACHINE={path}, or leave it out with STEPTIME_MACHINE=/dev/null."
        )


def trust(path: Path) -> None:
    entry = _entry(path)
    entries = [line for line in _entries() if line != entry]
    target = settings_folder() / LIST
    explained = explain_write_errors(f"The list {target}", "Name the machine file instead.")
    with explained, atomic_write(target) as draft:
        draft.write_text("".join(f"{line}\n" for line in [*entries, entry]))


def _entry(path: Path) -> str:
    try:
        return f"{sha256_of(path)} {path.resolve()}"
    except OSError as problem:
        raise SteptimeError(
            f"The machine file {path} cannot be read: {problem.strerror}. "
            "To trust a file, go to its folder."
        ) from None


def _entries() -> list[str]:
    try:
        return read_text(settings_folder() / LIST).splitlines()
    except (OSError, UnicodeDecodeError):
        return []
