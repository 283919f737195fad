"""Errors that users can cause. A message says what is wrong, what was found, and what to do."""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable

FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The kernel's codes if a disk, a quota or the limit of a file's size is reached."""


class SteptimeError(Exception):
    """Shown to the user as one sentence, without a traceback."""


class UnknownName(SteptimeError):
    """A name that does not exist here."""


class WrongGraph(SteptimeError):
    """A network whose layers do not fit together."""


class UnreadableFile(SteptimeError):
    """A user's file of a network or of weights. After it is mended, another try may succeed."""


class Unsupported(SteptimeError):
    """What a framework cannot do, with the reason. This is never a crash."""


class NotInstalled(SteptimeError):
    """Something is missing here, with how to get it. After that, another try may succeed."""


class NoSpace(SteptimeError):
    """A disk or a staging tier is full. After somebody has made room, another try may succeed."""


def unknown(what: str, name: object, names: Iterable[str], where: str = "") -> UnknownName:
    """The error for a misspelt name: shows it, and the nearest existing one."""
    existing = sorted(names)
    close = difflib.get_close_matches(str(name), existing, n=1, cutoff=0.5)
    if close:
        hint = f"Did you mean {close[0]!r}?"
    else:
        hint = f"There are: {', '.join(existing) or 'none'}."
    return UnknownName(f"{where}No {what} {str(name)!r}. {hint}")
