"""Rates say what they count, and of how many devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from steptime.analysis.estimates import Estimate
from steptime.analysis.throughput import throughput, units_per_step

STEP = Estimate(0.5, 0.4, 0.625, "95 %")
Make = Callable[..., Any]


def test_every_unit_has_its_own_rate() -> None:
    found = throughput(STEP, {"sentences": 8, "source_tokens": 200, "target_tokens": 160})
    assert found.unit == "sentences" and found.value == 16
    assert {unit: rate.value for unit, rate in found.aggregate.items()} == {
        "sentences": 16, "source_tokens": 400, "target_tokens": 320,
    }  # fmt: skip


def test_one_of_several_devices_does_its_share() -> None:
    found = throughput(STEP, {"images": 64}, devices=4)
    assert (found.per_device["images"].value, found.aggregate["images"].value, found.devices) == (
        32,
        128,
        4,
    )


def test_an_interval_is_turned_over() -> None:
    rate = throughput(STEP, {"images": 10}).per_device["images"]
    assert (rate.low, rate.high, rate.claim) == (16, 25, "95 %")


@pytest.mark.parametrize(
    ("told", "units"),
    [
        ({"unit": "images", "units_per_step": 32}, {"images": 32}),
        ({}, {"samples": 4}),
        ({"unit": "tokens", "units_per_step": {"tokens": 80}}, {"tokens": 80}),
    ],
)
def test_old_journals_with_one_number_are_read(
    told: dict[str, Any], units: dict[str, float], attempt_of: Make
) -> None:
    assert units_per_step(replace(attempt_of([1], blocks=1, batch_size=4), network=told)) == units


def test_the_main_unit_comes_first(attempt_of: Make) -> None:
    told = {"unit": "sentences", "units_per_step": {"source_tokens": 9, "sentences": 3}}
    assert list(units_per_step(replace(attempt_of([1], blocks=1), network=told))) == [
        "sentences",
        "source_tokens",
    ]
