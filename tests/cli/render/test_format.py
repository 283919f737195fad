"""Numbers and settings as people read and write them."""

from __future__ import annotations

import pytest

from steptime.cli.render.format import differing, rough_duration, settings, with_prefix
from steptime.core.case import Case
from steptime.core.errors import SteptimeError
from steptime.core.format import byte_count


def test_rates_and_sizes_carry_prefix_and_unit() -> None:
    assert with_prefix(794.5e12, "FLOP/s") == "794.5 TFLOP/s"
    assert with_prefix(12.0, "B/s") == "12 B/s"
    assert byte_count(32 << 20) == "32 MiB"


def test_waiting_times_are_rounded() -> None:
    assert [rough_duration(s) for s in (0.2, 59.6, 120, 7200)] == ["1 s", "60 s", "2 min", "2.0 h"]


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
