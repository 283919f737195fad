"""One measured process as arrays: its kept steps and its blocks.

No other module of the analysis reads the samples of a measurement."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np

from steptime.analysis import autocorrelation, quantiles
from steptime.analysis.quantiles import Numbers
from steptime.core.measurement import Block, Measurement
from steptime.core.record import Attempt

# Points along a process, for the tests of drift: more of them add time, but no power. A point is
# the median of at least three samples, so that one slow sample does not show.
MOST_POINTS = 60
LEAST_SAMPLES = 3


@dataclass(frozen=True)
class Span:
    """A block and the samples of its process that it covers, warm-up included."""

    block: Block
    first: int
    last: int


@dataclass(frozen=True)
class Point:
    """The median step from this sample on."""

    seconds: float
    first: int


@dataclass(frozen=True)
class Order:
    """What sorting the steps yields, without keeping them sorted."""

    median: float
    deviation: float
    bounds: dict[float, float | None]


@dataclass(frozen=True)
class Process:
    attempt: Attempt
    measurement: Measurement
    # Kept samples; a sample of several steps gives their mean.
    step_seconds: Numbers

    @cached_property
    def order(self) -> Order:
        ascending = np.sort(self.step_seconds)
        bounds = {percent: quantiles.bound(ascending, percent) for percent in quantiles.PERCENTILES}
        return Order(quantiles.median(ascending), quantiles.deviation(ascending), bounds)

    @property
    def typical(self) -> float:
        return self.order.median

    @cached_property
    def mean(self) -> float:
        return float(np.mean(self.step_seconds))

    @property
    def steps(self) -> int:
        return len(self.step_seconds) * self.measurement.group

    @cached_property
    def effective_samples(self) -> float:
        return autocorrelation.effective_samples(self.step_seconds)

    @cached_property
    def kept_spans(self) -> tuple[Span, ...]:
        """Blocks after warm-up; the last block if warm-up reaches into it."""
        cut = self.measurement.cut
        kept = tuple(span for span in self.spans if span.first >= cut)
        return kept or self.spans[-1:]

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        blocks = self.measurement.blocks
        ends = accumulate(block.samples for block in blocks)
        return tuple(
            Span(block, end - block.samples, end) for block, end in zip(blocks, ends, strict=True)
        )

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(span.block for span in self.kept_spans)

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """Medians of equal runs of the kept samples."""
        samples = self.step_seconds
        count = min(MOST_POINTS, max(1, len(samples) // LEAST_SAMPLES))
        edges = np.linspace(0, len(samples), count + 1).astype(int)
        cut = self.measurement.cut
        points = []
        for first, last in pairwise(edges.tolist()):
            points.append(Point(quantiles.median(np.sort(samples[first:last])), cut + first))
        return tuple(points)

    @property
    def block_steps(self) -> int:
        """Steps inside the kept blocks, by which the side channels are divided."""
        return self.measurement.group * sum(block.samples for block in self.blocks)

    def median_between(self, first: int, last: int) -> float:
        """Median step of these samples, counted from the start of warm-up."""
        cut = self.measurement.cut
        samples = self.step_seconds[max(first - cut, 0) : last - cut]
        return quantiles.median(np.sort(samples))


def measured_processes(attempts: Iterable[Attempt]) -> tuple[Process, ...]:
    """Attempts that measured, in the order in which they ran."""
    processes = []
    for attempt in attempts:
        measurement = attempt.measurement
        if measurement is not None:
            processes.append(Process(attempt, measurement, _step_seconds(measurement)))
    return tuple(processes)


def _step_seconds(measurement: Measurement) -> Numbers:
    if measurement.device_ns is None:
        stamps = np.asarray(measurement.stamps, dtype=np.int64)
        kept_ns = np.diff(stamps[measurement.cut :])
    else:
        kept_ns = np.asarray(measurement.device_ns, dtype=np.int64)[measurement.cut :]
    seconds: Numbers = kept_ns / (1e9 * measurement.group)
    return seconds
