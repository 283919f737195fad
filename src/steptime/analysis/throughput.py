"""Times as rates. A rate always says what it counts, and whether it is of one device or of all together."""

from __future__ import annotations

from dataclasses import dataclass

from steptime.core.record import Attempt


@dataclass(frozen=True)
class Estimate:
    """A value with its interval, and what the interval claims."""

    value: float
    low: float | None
    high: float | None
    claim: str

    @property
    def half_width(self) -> float | None:
        return (
            None
            if self.low is None or self.high is None
            else (self.high - self.low) / 2 / self.value
        )

    def inverted(self, units: float) -> Estimate:
        """A time per step as a speed."""
        low = None if self.high is None else units / self.high
        high = (
            units / self.low if self.low is not None and self.low > 0 else None
        )  # Student's may reach below zero
        return Estimate(units / self.value, low, high, self.claim)


@dataclass(frozen=True)
class Throughput:
    """Per second and by unit: images, tokens, sentences, source_tokens, target_tokens, samples."""

    unit: str  # the one that counts where only one is wanted
    devices: int
    per_device: dict[str, Estimate]
    aggregate: dict[str, Estimate]

    @property
    def value(self) -> float:
        return self.aggregate[self.unit].value


def throughput(step: Estimate, units_per_step: dict[str, float], devices: int = 1) -> Throughput:
    """`units_per_step` counts what all devices do in a step, the main unit first."""
    return Throughput(
        unit=next(iter(units_per_step)),
        devices=devices,
        per_device={unit: step.inverted(count / devices) for unit, count in units_per_step.items()},
        aggregate={unit: step.inverted(count) for unit, count in units_per_step.items()},
    )


def units_per_step(attempt: Attempt) -> dict[str, float]:
    """The main unit first. Journals of 0.1 have one number, and its word beside it."""
    unit = attempt.network.get("unit", "samples")
    told = attempt.network.get("units_per_step", attempt.case.batch_size)
    counts = told if isinstance(told, dict) else {unit: told}
    return {unit: float(counts[unit]), **{name: float(count) for name, count in counts.items()}}
