"""Numbers and settings as people read and write them."""

from __future__ import annotations

import pytest

from steptime.cli.words import byte_count, clock, differing, digits, duration, percent, scaled, settings
from steptime.core.case import Case
from steptime.core.errors import SteptimeError


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
def test_a_duration_has_four_digits_and_the_fitting_unit(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(("value", "words"), [(5193.4, "5,193"), (12.3456, "12.35"), (0.012345, "0.01235"), (0.0, "0")])
def test_numbers_have_four_digits_and_no_exponent(value: float, words: str) -> None:
    assert digits(value) == words


def test_rates_and_sizes_carry_prefix_and_unit() -> None:
    assert scaled(794.5e12, "FLOP/s") == "794.5 TFLOP/s"
    assert scaled(12.0, "B/s") == "12 B/s"
    assert byte_count(32 << 20) == "32 MiB"


def test_waiting_times_are_rounded() -> None:
    assert [clock(s) for s in (0.2, 59.6, 120, 7200)] == ["1 s", "60 s", "2 min", "2.0 h"]


def test_small_shares_keep_two_digits() -> None:
    assert [percent(share) for share in (0.0123, 0.00057, 0.42)] == ["1.2 %", "0.057 %", "42 %"]


def test_only_the_settings_that_differ_are_named() -> None:
    cases = [Case(workload="lenet5", batch_size=size) for size in (1, 2)]
    assert differing(cases) == ["workload", "batch_size"]
    assert differing(cases[:1], always=()) == []


def test_settings_become_numbers_lists_and_words() -> None:
    found = settings(["batch_size=1,32", "device=cuda:0", "seed=3", "protocol.target=1e-3"])
    assert found == {"batch_size": [1, 32], "device": "cuda:0", "seed": 3, "protocol.target": 0.001}


@pytest.mark.parametrize("text", ["batch_size", "=3", "mode="])
def test_a_setting_without_name_or_value_is_refused(text: str) -> None:
    with pytest.raises(SteptimeError, match="Settings are written key=value"):
        settings([text])
