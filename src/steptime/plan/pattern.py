"""A plan's regular expressions, with a time limit.

Some patterns take ages for a short text, and a plan may come from anybody."""

from __future__ import annotations

import re
import signal
import threading

from steptime.core.errors import SteptimeError

SECONDS = 1.0


def match_all(pattern: str, text: str, where: str = "") -> re.Match[str] | None:
    """Match the whole text. Raises an error that begins with `where` if that takes too long."""
    # Only the main thread gets signals, and that is where plans are read.
    if threading.current_thread() is not threading.main_thread():
        return re.fullmatch(pattern, text, re.DOTALL)

    def stop(*_: object) -> None:
        raise SteptimeError(
            f"{where}matches takes too long for {text!r}: use a simpler pattern than {pattern!r}."
        )

    previous_handler = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        return re.fullmatch(pattern, text, re.DOTALL)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous_handler)
