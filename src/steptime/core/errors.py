"""What users can cause. A message says what is wrong, what was found, and what to do."""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable

FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the kernel answers if a disk, a quota or the limit of a file's size is reached."""


class SteptimeError(Exception):
    """Shown to the user as one sentence, without a traceback."""


class UnknownWord(SteptimeError):
    """A name that nothing here answers to."""


class WrongGraph(SteptimeError):
    """A network whose layers do not fit together."""


class Unsupported(SteptimeError):
    """What this framework cannot do: a stated reason, never a crash."""


class NotInstalled(SteptimeError):
    """A part that is not here yet, with how to get it: once that is done, another try may succeed."""


class NoSpace(SteptimeError):
    """A disk or a staging tier is full: after somebody has made room, another try may succeed."""


def unknown(what: str, word: object, known: Iterable[str], where: str = "") -> UnknownWord:
    """The error for a misspelt word: names it, and the nearest known one."""
    words = sorted(known)
    close = difflib.get_close_matches(str(word), words, n=1, cutoff=0.5)
    hint = f"Did you mean {close[0]!r}?" if close else f"There are: {', '.join(words) or 'none'}."
    return UnknownWord(f"{where}No {what} {str(word)!r}. {hint}")
