from __future__ import annotations

import signal

import pytest

from steptime.core.errors import SteptimeError
from steptime.plan import pattern


def test_the_whole_text_must_match() -> None:
    assert pattern.match_all("a(?P<n>[0-9]+)", "a12") and not pattern.match_all("a", "ab")


def test_a_pattern_that_takes_ages_is_refused_with_its_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pattern, "SECONDS", 0.05)
    with pytest.raises(SteptimeError, match="line 3: matches takes too long for"):
        pattern.match_all("(a+)+", "a" * 60 + "!", "line 3: ")


def test_whoever_waits_for_an_alarm_still_does() -> None:
    before = signal.getsignal(signal.SIGALRM)
    pattern.match_all("a", "a")
    assert signal.getsignal(signal.SIGALRM) is before and signal.getitimer(signal.ITIMER_REAL) == (
        0.0,
        0.0,
    )
