from __future__ import annotations

from dataclasses import replace

import pytest

from steptime.core.errors import SteptimeError, UnknownName
from steptime.core.protocol import PRESETS, Protocol, preset


@pytest.mark.parametrize("name", PRESETS)
def test_a_profile_survives_being_written_and_changes_nothing_of_its_own(name: str) -> None:
    protocol = preset(name)
    assert Protocol.from_dict(protocol.to_dict()) == protocol
    assert protocol.changes() == {}


def test_a_changed_number_travels_and_what_the_session_learns_does_not() -> None:
    assert replace(preset("gold"), target=0.005, steps=100, warmup_start=3).changes() == {
        "target": 0.005
    }


def test_an_unknown_profile_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'standard'"):
        preset("standart")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("look_alpha", 5),
        ("target", float("nan")),
        ("block_seconds", -1),
        ("batch", 0),
        ("processes_least", -1),
    ],
)
def test_a_number_out_of_its_range_is_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(SteptimeError, match=f"protocol.{name} must be"):
        replace(preset("standard"), **{name: value})


@pytest.mark.parametrize("looks", [(), (0,), (8, 8), (12, 8), ("x",)])
def test_looks_grow(looks: tuple[int, ...]) -> None:
    with pytest.raises(SteptimeError, match="pair_looks must be growing"):
        replace(preset("standard"), pair_looks=looks)


def test_the_least_number_of_processes_is_not_above_the_most() -> None:
    with pytest.raises(SteptimeError, match="not be above"):
        replace(preset("standard"), processes_least=40)
