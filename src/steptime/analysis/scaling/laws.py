"""Laws of scaling, fitted to a series: what more devices would bring, and what nothing measured here can tell.

Amdahl (1967): T(N) = serial + parallel / N, the batch of all together held. Gustafson (1988): throughput grows as
serial + parallel · N, the batch of each held. Communication: T(N) = compute(N) + wait(N) + what that wait costs the
step behind it, with wait(N) = max(0, comm(N) − hidden · compute(N)) and a ring's cost (Patarasuk and Yuan, 2009),
comm(N) = 2 (N − 1) · latency + 2 (N − 1) / N · bytes / bandwidth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

import numpy as np

from steptime.analysis.scaling.draws import Uncertain, ends, fitted, holds, is_sure
from steptime.analysis.scaling.series import Point, Series, ring_share
from steptime.core.case import ALL_REDUCE
from steptime.core.format import percent

ALPHA = 0.05
TOLERABLE = 0.02  # what two results may differ by and still be called the same
PARTS = 3  # of the law of communication that may be wrong: computing, the link, the step as a whole
UNCHECKED = "as many parameters as numbers of devices: nothing checks it"
NO_LATENCY = "the interval of the latency holds zero"
EITHER = "one number of devices does not tell latency from bandwidth: intervals reach from all of one to all of the other"
ONE_NUMBER = "latency is that of one number: a library may send many bytes, or to more devices, in another way"
ALL_HIDDEN = "no exchange was exposed for sure: more than was seen may be hidden, so that predictions are cautious"
Step = Callable[[int, float | None], Uncertain]
"""Seconds of a step with so many devices, at this bandwidth instead of the measured one."""
Shapes = Sequence[Sequence[float]]


class Off(NamedTuple):
    """Where the measured series contradicts a law, beyond its interval."""

    share: float = 0.0
    words: str = ""


NOT_OFF = Off()
BELOW_ZERO = Off(inf, "one of its parts would have to be below zero")


@dataclass(frozen=True)
class Law:
    name: str
    parameters: dict[str, Uncertain]
    devices: tuple[int, ...]  # what it was fitted to
    step: Step = field(repr=False)
    remarks: tuple[str, ...] = ()
    off: Off = NOT_OFF

    @property
    def misfit(self) -> str:
        """With it nothing is predicted."""
        return self.off.words if abs(self.off.share) > TOLERABLE else ""

    @property
    def doubts(self) -> tuple[str, ...]:
        slight = self.off.words and not self.misfit
        return (
            (*self.remarks, f"{self.off.words}: predictions far beyond may miss")
            if slight
            else self.remarks
        )


@dataclass(frozen=True)
class NoLaw:
    name: str
    reason: str


@dataclass(frozen=True)
class Prediction:
    devices: int
    bandwidth: float | None  # bytes a second, where another one was asked for
    step: Uncertain
    speed_up: Uncertain
    efficiency: Uncertain


def laws(series: Series) -> list[Law | NoLaw]:
    """The one that knows most first."""
    return [communication(series), (gustafson if series.kind == "weak" else amdahl)(series)]


def predicted(
    series: Series, law: Law, devices: int, bandwidth: float | None = None
) -> Prediction | None:
    """None where the law knows nothing of bandwidth, a batch cannot be shared by so many, or no time would be left."""
    if (
        law.misfit
        or series.batch_size(devices) < 1
        or (bandwidth is not None and law.name != "communication")
    ):
        return None
    step = law.step(devices, bandwidth)
    if step[0] <= 0:
        return None
    step = np.where(step <= 0, np.inf if law.name == "Gustafson" else np.finfo(float).tiny, step)
    return Prediction(
        devices, bandwidth, step, series.speed_up(devices, step), series.efficiency(devices, step)
    )


def amdahl(series: Series) -> Law | NoLaw:
    steps = [point.step for point in series.clean]
    return _of_two("Amdahl", series.clean, [1 / point.devices for point in series.clean], steps)


def gustafson(series: Series) -> Law | NoLaw:
    rates = [point.devices / point.step for point in series.clean]
    return _of_two("Gustafson", series.clean, [point.devices for point in series.clean], rates)


def _of_two(
    name: str, points: Sequence[Point], shape: Sequence[float], values: Sequence[Uncertain]
) -> Law | NoLaw:
    """A part that stays and one that is shared: of the time, or of the throughput."""
    if len(points) < 2:
        return _too_few(name, points)
    shapes = [[1.0, size] for size in shape]
    serial, parallel = fitted(shapes, values)

    def step(devices: int, _: float | None) -> Uncertain:
        return (
            serial + parallel / devices
            if name == "Amdahl"
            else devices / (serial + parallel * devices)
        )

    doubts = (UNCHECKED,) if len(points) == 2 else ()
    share = {"serial_share": serial / (serial + parallel)}
    off = _worst(_below_zero(serial, parallel), _off(points, shapes, values))
    return Law(name, share, _devices(points), step, doubts, off)


def communication(series: Series) -> Law | NoLaw:
    name = "communication"
    if series.exchange not in ALL_REDUCE:
        return NoLaw(name, f"a ring's cost is not that of {series.exchange.replace('_', ' ')}")
    points = [point for point in series.clean if point.overlapped is not None]
    computing = [
        p
        for p in series.clean
        if p.independent is not None and (series.kind == "strong" or p.devices > 1)
    ]
    if not points or (series.kind == "strong" and len(computing) < 2):
        return _too_few(name, points)
    compute, compute_off = _compute(computing, series.kind)
    link = _link(points)
    hidden = np.mean([_hidden_share(point) for point in points], axis=0)
    waiting = points[-1].waiting

    def step(devices: int, bandwidth: float | None) -> Uncertain:
        bare = compute(devices)
        wait: Uncertain = np.maximum(0, link.seconds(devices, bandwidth) - hidden * bare)
        return bare + waiting.exposed(wait, bare)

    residuals = [(point.devices, step(point.devices, None) / point.step - 1) for point in points]
    off = _worst(compute_off, link.off, _beyond(residuals, PARTS * len(points)))
    parameters = {**link.parameters, "hidden_share": hidden}
    exposed = [point.exposed for point in points if point.exposed is not None]
    doubts = (*link.doubts, *([ALL_HIDDEN] if all(map(holds, exposed)) else []))
    return Law(name, parameters, _devices(points), step, doubts, off)


def _hidden_share(point: Point) -> Uncertain:
    assert point.exchange is not None and point.waited is not None and point.independent is not None
    return (point.exchange - point.waited) / point.independent


def _compute(points: Sequence[Point], kind: str) -> tuple[Callable[[int], Uncertain], Off]:
    """Without exchange, and where that is off. In a weak series a further device computes as long as those that have
    neighbours already; in a strong one a step is a fixed part and one that is shared."""
    shapes = [[1.0] if kind == "weak" else [1.0, 1 / point.devices] for point in points]
    steps = [point.independent for point in points if point.independent is not None]
    fixed, *shared = fitted(shapes, steps)
    off = _off(points, shapes, steps, part="computing")
    return lambda devices: fixed + sum(part / devices for part in shared), off


@dataclass(frozen=True)
class _Link:
    """Never clamped: a latency whose interval holds zero may be below it."""

    latency: Uncertain
    seconds_per_byte: Uncertain
    exchanged_bytes: int
    doubts: tuple[str, ...] = ()
    off: Off = NOT_OFF

    def seconds(self, devices: int, bandwidth: float | None) -> Uncertain:
        each = self.seconds_per_byte if bandwidth is None else 1 / bandwidth
        return 2 * (devices - 1) * self.latency + ring_share(devices) * self.exchanged_bytes * each

    @property
    def parameters(self) -> dict[str, Uncertain]:
        with np.errstate(divide="ignore"):
            bandwidth = np.where(self.seconds_per_byte <= 0, np.inf, 1 / self.seconds_per_byte)
        return {"latency_seconds": self.latency, "bandwidth_bytes_per_second": bandwidth}


def _link(points: Sequence[Point]) -> _Link:
    moved = points[-1].exchanged_bytes
    alone = [point.exchange for point in points if point.exchange is not None]
    shapes = [[2.0 * (point.devices - 1), ring_share(point.devices) * moved] for point in points]
    if len(points) == 1:
        return _link_of_one(points[0], alone[0], shapes[0], moved)
    latency, each = fitted(shapes, alone)
    doubts = (UNCHECKED,) * (len(points) == 2) + (NO_LATENCY,) * (
        is_sure(latency) and holds(latency)
    )
    off = _worst(_below_zero(latency, each), _off(points, shapes, alone, part="the exchange"))
    return _Link(latency, each, moved, doubts, off)


def _link_of_one(point: Point, seconds: Uncertain, shape: Sequence[float], moved: int) -> _Link:
    """One number tells the two apart. Where nothing does, half of the draws are all latency and half all bandwidth."""
    (messages, volume), tiny = shape, point.latency
    if (
        tiny is not None
        and tiny[0] < seconds[0]
        and not (is_sure(seconds - tiny) and holds(seconds - tiny))
    ):
        return _Link(tiny / messages, (seconds - tiny) / volume, moved, (ONE_NUMBER,))
    share = np.resize([0.0, 1.0], len(seconds))
    share[0] = 0.5
    return _Link(share * seconds / messages, (1 - share) * seconds / volume, moved, (EITHER,))


def _below_zero(*parts: Uncertain) -> Off:
    below = any(part[0] < 0 and not (is_sure(part) and holds(part)) for part in parts)
    return BELOW_ZERO if below else NOT_OFF


def _off(
    points: Sequence[Point], shapes: Shapes, values: Sequence[Uncertain], *, part: str = ""
) -> Off:
    """`part`: of a law that has several, each of which may be called wrong."""
    spare = len(values) - len(shapes[0])
    if spare <= 0:
        return NOT_OFF
    factors = fitted(shapes, values)
    sums = [sum(size * factor for size, factor in zip(row, factors, strict=True)) for row in shapes]
    residuals = [
        (point.devices, total / value - 1)
        for point, total, value in zip(points, sums, values, strict=True)
    ]
    return _beyond(residuals, spare * (PARTS if part else 1), part)


def _beyond(residuals: Sequence[tuple[int, Uncertain]], tests: int, part: str = "") -> Off:
    """The worst one whose interval, wider the more there are to test, keeps from zero."""
    return _worst(
        *(_told(*one, part or "it") for one in residuals if not holds(one[1], ALPHA / tests))
    )


def _told(devices: int, off: Uncertain, part: str) -> Off:
    low, high = (percent(end) for end in ends(off))
    return Off(
        float(off[0]),
        f"at {devices} devices {part} is {percent(off[0])} ({low} … {high}) off what was measured",
    )


def _worst(*several: Off) -> Off:
    return max(several, key=lambda off: abs(off.share), default=NOT_OFF)


def _devices(points: Sequence[Point]) -> tuple[int, ...]:
    return tuple(point.devices for point in points)


def _too_few(name: str, points: Sequence[Point]) -> NoLaw:
    there = ", ".join(str(point.devices) for point in points) or "none"
    return NoLaw(
        name,
        f"too few numbers of devices that are measured in full and not oversubscribed: {there}",
    )
