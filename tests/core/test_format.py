"""Numbers as people read them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from steptime.core.format import digits, duration, percent, shorten, with_interval


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1.5, "1.5 s"),
        (0.0123456, "12.35 ms"),
        (64.2e-6, "64.2 µs"),
        (999.96e-6, "1,000 µs"),
        (40e-9, "40 ns"),
        (0, "0 ns"),
    ],
)
def test_duration_has_four_digits_and_a_fitting_unit(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("value", "words"), [(5193.4, "5,193"), (12.3456, "12.35"), (0.012345, "0.01235"), (0.0, "0")]
)
def test_digits_has_four_digits_and_no_exponent(value: float, words: str) -> None:
    assert digits(value) == words


@pytest.mark.parametrize("high", [None, float("inf")])
def test_with_interval_shows_an_infinite_end(high: float | None) -> None:
    assert (
        with_interval({"value": 0.1, "low": 0.02, "high": high}, duration) == "100 ms (20 ms … ∞)"
    )
    assert with_interval({"value": 0.1, "low": None, "high": None}, duration) == "100 ms"


def test_percent_keeps_two_digits_of_small_shares() -> None:
    assert [percent(share) for share in (0.0123, 0.00057, 0.42)] == ["1.2 %", "0.057 %", "42 %"]


def test_with_interval_shows_an_end_at_minus_infinity() -> None:
    ends = {"value": 0.1, "low": float("-inf"), "high": 0.2}
    assert with_interval(ends, percent) == "10 % (-∞ … 20 %)"


@pytest.mark.parametrize("form", [digits, percent])
def test_numbers_that_are_huge_have_an_exponent(form: Callable[[float], str]) -> None:
    assert len(form(1.5e300)) < 12


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("at most this", "at most this"),
        ("needs 12,345,678 bytes", "needs…"),
        ("needs a byte more", "needs a byte…"),
        ("void_kernel_of_many_letters", "void_kernel_o…"),
    ],
)
def test_shorten_cuts_between_words_and_never_in_a_number(text: str, short: str) -> None:
    assert shorten(text, 14) == short
