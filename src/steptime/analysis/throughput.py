"""Throughput: times as rates. A rate names its unit, and is per device or of all devices."""

from __future__ import annotations

from dataclasses import dataclass

from steptime.analysis.estimates import Estimate
from steptime.core.record import Attempt


@dataclass(frozen=True)
class Throughput:
    """Per second and by unit: images, tokens, sentences, source_tokens, target_tokens, samples."""

    unit: str  # the main unit
    devices: int
    per_device: dict[str, Estimate]
    aggregate: dict[str, Estimate]

    @property
    def value(self) -> float:
        """Of all devices, in the main unit."""
        return self.aggregate[self.unit].value


def throughput(step: Estimate, units_per_step: dict[str, float], devices: int = 1) -> Throughput:
    """`units_per_step` counts what all devices do in a step, the main unit first."""
    return Throughput(
        unit=next(iter(units_per_step)),
        devices=devices,
        per_device={unit: step.as_rate(count / devices) for unit, count in units_per_step.items()},
        aggregate={unit: step.as_rate(count) for unit, count in units_per_step.items()},
    )


def units_per_step(attempt: Attempt) -> dict[str, float]:
    """Units of all devices in one step, the main unit first."""
    main_unit = attempt.network.get("unit", "samples")
    counts = attempt.network.get("units_per_step", attempt.case.batch_size)
    # Journals of version 0.1 hold a single number, in the main unit.
    if not isinstance(counts, dict):
        return {main_unit: float(counts)}
    # A unit that nothing was counted in is none: the first that was counted is the main one.
    if main_unit not in counts:
        main_unit = next(iter(counts), "")
    if not main_unit:
        return {"samples": float(attempt.case.batch_size)}
    units = {main_unit: float(counts[main_unit])}
    for unit, count in counts.items():
        units[unit] = float(count)
    return units
