from __future__ import annotations

import pytest

from steptime.analysis.wording import duration, percent


@pytest.mark.parametrize(("seconds", "text"), [(2.5, "2.5 s"), (0.0123, "12.3 ms"), (64e-6, "64 µs"), (5e-8, "50 ns")])
def test_a_duration_is_given_in_its_own_unit(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_percent_has_as_many_digits_as_asked() -> None:
    assert (percent(0.056), percent(0.0561, 1)) == ("6 %", "5.6 %")
