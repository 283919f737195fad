from __future__ import annotations

from dataclasses import replace

import pytest

from steptime.core.errors import SteptimeError, UnknownName
from steptime.core.protocol import PRESETS, Protocol, preset


@pytest.mark.parametrize("name", PRESETS)
def test_preset_survives_a_round_trip_without_changes(name: str) -> None:
    protocol = preset(name)
    assert Protocol.from_dict(protocol.to_dict()) == protocol
    assert protocol.changes() == {}


def test_changes_omit_what_the_session_learns() -> None:
    assert replace(preset("gold"), target=0.005, steps=100, warmup_start=3).changes() == {
        "target": 0.005
    }


def test_preset_suggests_the_nearest_name() -> None:
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
def test_protocol_refuses_numbers_out_of_range(name: str, value: float) -> None:
    with pytest.raises(SteptimeError, match=f"protocol.{name} must be"):
        replace(preset("standard"), **{name: value})


@pytest.mark.parametrize("looks", [(), (0,), (8, 8), (12, 8), ("x",)])
def test_protocol_refuses_looks_that_do_not_grow(looks: tuple[int, ...]) -> None:
    with pytest.raises(SteptimeError, match="pair_looks must be growing"):
        replace(preset("standard"), pair_looks=looks)


def test_protocol_refuses_least_processes_above_most() -> None:
    with pytest.raises(SteptimeError, match="not be above"):
        replace(preset("standard"), processes_least=40)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("processes_most", 10**40),
        ("processes_most", 3.5),
        ("budget_seconds", "x"),
        ("budget_seconds", 1e300),
        ("target", True),
        ("pair_looks", [10**40]),
        ("preset", []),
        ("preset", "unknown"),
    ],
)
def test_protocol_refuses_values_of_another_kind(name: str, value: object) -> None:
    with pytest.raises(SteptimeError):
        Protocol.from_dict({name: value})
