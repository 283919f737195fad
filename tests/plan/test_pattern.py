from __future__ import annotations

import signal

import pytest

from steptime.core.errors import SteptimeError
from steptime.plan import pattern


def test_match_all_matches_the_whole_text() -> None:
    assert pattern.match_all("a(?P<n>[0-9]+)", "a12") and not pattern.match_all("a", "ab")


def test_match_all_refuses_slow_patterns_with_their_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pattern, "SECONDS", 0.05)
    with pytest.raises(SteptimeError, match="line 3: matches takes too long for"):
        pattern.match_all("(a+)+", "a" * 60 + "!", "line 3: ")


def test_match_all_restores_the_alarm() -> None:
    before = signal.getsignal(signal.SIGALRM)
    pattern.match_all("a", "a")
    assert signal.getsignal(signal.SIGALRM) is before and signal.getitimer(signal.ITIMER_REAL) == (
        0.0,
        0.0,
    )
