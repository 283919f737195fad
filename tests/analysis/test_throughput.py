"""Rates say what they count, and of how many devices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from factories import make_attempt
from steptime.analysis.estimates import Estimate
from steptime.analysis.throughput import throughput, units_per_step

STEP = Estimate(0.5, 0.4, 0.625, "95 %")


def test_throughput_has_a_rate_for_each_unit() -> None:
    found = throughput(STEP, {"sentences": 8, "source_tokens": 200, "target_tokens": 160})
    assert found.unit == "sentences" and found.value == 16
    assert {unit: rate.value for unit, rate in found.aggregate.items()} == {
        "sentences": 16, "source_tokens": 400, "target_tokens": 320,
    }  # fmt: skip


def test_throughput_per_device_is_the_aggregate_over_devices() -> None:
    found = throughput(STEP, {"images": 64}, devices=4)
    assert (found.per_device["images"].value, found.aggregate["images"].value, found.devices) == (
        32,
        128,
        4,
    )


def test_estimate_as_rate_inverts_the_interval() -> None:
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
def test_units_per_step_reads_a_single_number(
    told: dict[str, Any], units: dict[str, float]
) -> None:
    assert units_per_step(replace(make_attempt([1], blocks=1, batch_size=4), network=told)) == units


def test_units_per_step_puts_the_main_unit_first() -> None:
    told = {"unit": "sentences", "units_per_step": {"source_tokens": 9, "sentences": 3}}
    assert list(units_per_step(replace(make_attempt([1], blocks=1), network=told))) == [
        "sentences",
        "source_tokens",
    ]


@pytest.mark.parametrize(
    ("counts", "expected"), [({"images": 3}, {"images": 3.0}), ({}, {"samples": 8.0})]
)
def test_units_per_step_of_an_unknown_main_unit(
    counts: dict[str, int], expected: dict[str, float]
) -> None:
    network = {"unit": "furlongs", "units_per_step": counts}
    attempt = make_attempt([1, 2, 3], batch_size=8, network=network)
    assert units_per_step(attempt) == expected
