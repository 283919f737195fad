from __future__ import annotations

import signal
import subprocess
import sys

from steptime.plan import pattern


def test_match_all_matches_the_whole_text() -> None:
    assert pattern.match_all("a(?P<n>[0-9]+)", "a12") and not pattern.match_all("a", "ab")


SLOW = """
from steptime.plan import pattern
pattern.SECONDS = 0.05
pattern.match_all("(a+)+", "a" * 60 + "!", "line 3: ")
"""


def test_match_all_refuses_slow_patterns_with_their_line() -> None:
    # In a fresh process, as plans are read: in one where other tests had loaded inference
    # runtimes, the alarm ended Python with a segmentation fault.
    done = subprocess.run([sys.executable, "-c", SLOW], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "SteptimeError: line 3: matches takes too long for" in done.stderr


def test_match_all_restores_the_alarm() -> None:
    before = signal.getsignal(signal.SIGALRM)
    pattern.match_all("a", "a")
    assert signal.getsignal(signal.SIGALRM) is before and signal.getitimer(signal.ITIMER_REAL) == (
        0.0,
        0.0,
    )
