"""One measured process as arrays: its kept steps and its blocks. The only place that reads a measurement's samples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np

from steptime.analysis import autocorrelation, quantiles
from steptime.analysis.quantiles import Numbers
from steptime.core.measurement import Block, Measurement
from steptime.core.record import Attempt

MOST_POINTS = 60


@dataclass(frozen=True)
class Span:
    """A block with its place among the samples of its process, warm-up included."""

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
    """What sorting the steps tells, without keeping them sorted."""

    median: float
    deviation: float
    bounds: dict[float, float | None]


@dataclass(frozen=True)
class Process:
    attempt: Attempt
    measurement: Measurement
    step_seconds: Numbers  # kept samples; a sample of several steps gives their mean

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

    @cached_property
    def effective_samples(self) -> float:
        return autocorrelation.effective_samples(self.step_seconds)

    @cached_property
    def kept_spans(self) -> tuple[Span, ...]:
        spans, cut = self.spans, self.measurement.cut
        return tuple(s for s in spans if s.first >= cut) or spans[-1:]

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
        """Medians along the process; many blocks are taken together, which costs no power and saves time."""
        spans = self.kept_spans
        parts = np.array_split(np.arange(len(spans)), min(MOST_POINTS, len(spans)))
        ends = [(spans[part[0]].first, spans[part[-1]].last) for part in parts]
        return tuple(Point(self.median_between(first, last), first) for first, last in ends)

    @property
    def block_steps(self) -> int:
        """Steps inside the kept blocks: what the side channels are divided by."""
        return self.measurement.group * sum(block.samples for block in self.blocks)

    def median_between(self, first: int, last: int) -> float:
        """Median step of these samples, counted with warm-up."""
        cut = self.measurement.cut
        return quantiles.median(np.sort(self.step_seconds[max(first - cut, 0) : last - cut]))


def processes(attempts: Iterable[Attempt]) -> tuple[Process, ...]:
    """Those that measured, in the order in which they ran."""
    return tuple(
        Process(attempt, attempt.measurement, _step_seconds(attempt.measurement))
        for attempt in attempts
        if attempt.measurement is not None
    )


def _step_seconds(measurement: Measurement) -> Numbers:
    if measurement.device_ns is None:
        kept = np.diff(np.asarray(measurement.stamps, dtype=np.int64)[measurement.cut :])
    else:
        kept = np.asarray(measurement.device_ns, dtype=np.int64)[measurement.cut :]
    seconds: Numbers = kept / (1e9 * measurement.group)
    return seconds
