"""Scaling laws fitted to a series: what more devices would bring, and what was not measured.

Amdahl (1967): T(N) = serial + parallel / N, with a fixed batch of all devices.
Gustafson (1988): throughput grows as serial + parallel · N, with a fixed batch per device.
Communication: T(N) = compute(N) + wait(N) + the cost of that wait for the step after it, with
wait(N) = max(0, comm(N) − hidden · compute(N)) and the cost of a ring (Patarasuk and Yuan, 2009),
comm(N) = 2 (N − 1) · latency + 2 (N − 1) / N · bytes / bandwidth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

import numpy as np

from steptime.analysis.scaling.draws import (
    Uncertain,
    fit_factors,
    has_spread,
    holds_zero,
    interval_ends,
)
from steptime.analysis.scaling.series import Point, Series, ring_share
from steptime.core.case import ALL_REDUCE
from steptime.core.format import percent

ALPHA = 0.05
# Two results may differ by this much and still be called the same.
TOLERABLE = 0.02
# Components of the law of communication that are tested: computing, the link, the step in total.
COMPONENTS = 3
AMDAHL = "Amdahl"
GUSTAFSON = "Gustafson"
COMMUNICATION = "communication"
UNCHECKED = "as many parameters as numbers of devices: nothing checks it"
NO_LATENCY = "the interval of the latency contains zero"
EITHER = (
    "one number of devices does not tell latency from bandwidth: "
    "intervals reach from all of one to all of the other"
)
ONE_NUMBER = (
    "latency is that of one number: "
    "a library may send many bytes, or to more devices, in another way"
)
ALL_HIDDEN = (
    "no exchange was exposed for sure: more than was seen may be hidden, "
    "so predictions are cautious"
)
# Seconds of a step with so many devices, at this bandwidth instead of the measured one.
Step = Callable[[int, float | None], Uncertain]
Shapes = Sequence[Sequence[float]]


class Misfit(NamedTuple):
    """How far the measured series contradicts a law, beyond its interval."""

    share: float = 0.0
    description: str = ""


NO_MISFIT = Misfit()
BELOW_ZERO = Misfit(inf, "one of its terms would have to be below zero")


@dataclass(frozen=True)
class Law:
    name: str
    parameters: dict[str, Uncertain]
    # Numbers of devices that it was fitted to.
    devices: tuple[int, ...]
    step: Step = field(repr=False)
    remarks: tuple[str, ...] = ()
    worst_misfit: Misfit = NO_MISFIT

    @property
    def misfit(self) -> str:
        """Not empty if nothing may be predicted with this law."""
        is_large = abs(self.worst_misfit.share) > TOLERABLE
        return self.worst_misfit.description if is_large else ""

    @property
    def warnings(self) -> tuple[str, ...]:
        slight = "" if self.misfit else self.worst_misfit.description
        if not slight:
            return self.remarks
        return (*self.remarks, f"{slight}: predictions far beyond may miss")


@dataclass(frozen=True)
class NoLaw:
    name: str
    reason: str


@dataclass(frozen=True)
class Prediction:
    devices: int
    # Bytes per second; None: as measured.
    bandwidth: float | None
    step: Uncertain
    speed_up: Uncertain
    efficiency: Uncertain


def laws(series: Series) -> list[Law | NoLaw]:
    """The law that knows most first."""
    simple = gustafson(series) if series.kind == "weak" else amdahl(series)
    return [communication(series), simple]


def predict(
    series: Series, law: Law, devices: int, bandwidth: float | None = None
) -> Prediction | None:
    """None if the law does not fit, knows nothing of bandwidth, or leaves no time for a step.

    Also None if so many devices cannot share the batch."""
    if law.misfit or series.batch_size(devices) < 1:
        return None
    if bandwidth is not None and law.name != COMMUNICATION:
        return None
    step = law.step(devices, bandwidth)
    if step[0] <= 0:
        return None
    # Draws without a possible step: Gustafson's would be infinitely slow, the others infinitely
    # fast.
    impossible = np.inf if law.name == GUSTAFSON else 0.0
    step = np.where(step <= 0, impossible, step)
    with np.errstate(divide="ignore", over="ignore"):
        speed_up = series.speed_up(devices, step)
        efficiency = series.efficiency(devices, step)
    return Prediction(devices, bandwidth, step, speed_up, efficiency)


def amdahl(series: Series) -> Law | NoLaw:
    """A serial and a shared term of the time."""
    steps = [point.step for point in series.clean]
    shares = [1 / point.devices for point in series.clean]
    return _two_term_law(AMDAHL, series.clean, shares, steps)


def gustafson(series: Series) -> Law | NoLaw:
    """A serial and a shared term of the throughput."""
    rates = [point.devices / point.step for point in series.clean]
    counts = [point.devices for point in series.clean]
    return _two_term_law(GUSTAFSON, series.clean, counts, rates)


def _two_term_law(
    name: str, points: Sequence[Point], shape: Sequence[float], values: Sequence[Uncertain]
) -> Law | NoLaw:
    if len(points) < 2:
        return _too_few(name, points)
    shapes = [[1.0, size] for size in shape]
    serial, parallel = fit_factors(shapes, values)

    def step(devices: int, _: float | None) -> Uncertain:
        if name == AMDAHL:
            return serial + parallel / devices
        return devices / (serial + parallel * devices)

    remarks = (UNCHECKED,) if len(points) == 2 else ()
    parameters = {"serial_share": serial / (serial + parallel)}
    residuals = _fit_residuals(points, shapes, values)
    fit_misfit = _largest_misfit(residuals, _spare(shapes))
    misfit = _worst(_below_zero(serial, parallel), fit_misfit)
    return Law(name, parameters, _devices(points), step, remarks, misfit)


def communication(series: Series) -> Law | NoLaw:
    if series.exchange not in ALL_REDUCE:
        exchange = series.exchange.replace("_", " ")
        return NoLaw(COMMUNICATION, f"a ring's cost is not that of {exchange}")
    points = [point for point in series.clean if point.overlapped is not None]
    computing = _computing_points(series)
    if not points or (series.kind == "strong" and len(computing) < 2):
        return _too_few(COMMUNICATION, points)
    compute, compute_misfit = _compute(computing, series.kind)
    link = _link(points)
    hidden = np.mean([_hidden_share(point) for point in points], axis=0)
    pause_cost = points[-1].pause_cost

    def step(devices: int, bandwidth: float | None) -> Uncertain:
        bare = compute(devices)
        wait: Uncertain = np.maximum(0, link.seconds(devices, bandwidth) - hidden * bare)
        return bare + pause_cost.exposed_seconds(wait, bare)

    residuals = []
    for point in points:
        residuals.append(_Residual(point.devices, step(point.devices, None) / point.step - 1))
    step_misfit = _largest_misfit(residuals, COMPONENTS * len(points))
    remarks = link.remarks
    exposed = [point.exposed for point in points if point.exposed is not None]
    if all(holds_zero(number) for number in exposed):
        remarks = (*remarks, ALL_HIDDEN)
    return Law(
        COMMUNICATION,
        link.parameters | {"hidden_share": hidden},
        _devices(points),
        step,
        remarks,
        _worst(compute_misfit, link.misfit, step_misfit),
    )


def _computing_points(series: Series) -> list[Point]:
    """In a weak series one device does not count: it has no neighbours to compute beside."""
    points = [point for point in series.clean if point.independent is not None]
    if series.kind == "strong":
        return points
    return [point for point in points if point.devices > 1]


def _hidden_share(point: Point) -> Uncertain:
    assert point.exchange is not None and point.wait is not None and point.independent is not None
    return (point.exchange - point.wait) / point.independent


def _compute(points: Sequence[Point], kind: str) -> tuple[Callable[[int], Uncertain], Misfit]:
    """Time without exchange, and how far it is off.

    In a weak series a further device computes as long as those that have neighbours already. In a
    strong one a step has a fixed term and a shared one."""
    shapes = [[1.0] if kind == "weak" else [1.0, 1 / point.devices] for point in points]
    steps = [point.independent for point in points if point.independent is not None]
    fixed, *shared = fit_factors(shapes, steps)

    def compute(devices: int) -> Uncertain:
        return fixed + sum(term / devices for term in shared)

    residuals = _fit_residuals(points, shapes, steps)
    tests = COMPONENTS * _spare(shapes)
    return compute, _largest_misfit(residuals, tests, subject="computing")


@dataclass(frozen=True)
class _Link:
    """Never clamped: a latency whose interval contains zero may be below it."""

    latency: Uncertain
    seconds_per_byte: Uncertain
    exchanged_bytes: int
    remarks: tuple[str, ...] = ()
    misfit: Misfit = NO_MISFIT

    def seconds(self, devices: int, bandwidth: float | None) -> Uncertain:
        per_byte = self.seconds_per_byte if bandwidth is None else 1 / bandwidth
        sent_bytes = ring_share(devices) * self.exchanged_bytes
        return 2 * (devices - 1) * self.latency + sent_bytes * per_byte

    @property
    def parameters(self) -> dict[str, Uncertain]:
        with np.errstate(divide="ignore"):
            bandwidth = np.where(self.seconds_per_byte <= 0, np.inf, 1 / self.seconds_per_byte)
        return {"latency_seconds": self.latency, "bandwidth_bytes_per_second": bandwidth}


def _link(points: Sequence[Point]) -> _Link:
    sent_bytes = points[-1].exchanged_bytes
    seconds = [point.exchange for point in points if point.exchange is not None]
    shapes = []
    for point in points:
        shapes.append([2.0 * (point.devices - 1), ring_share(point.devices) * sent_bytes])
    if len(points) == 1:
        return _link_of_one_point(points[0], seconds[0], shapes[0])
    latency, per_byte = fit_factors(shapes, seconds)
    remarks = [UNCHECKED] if len(points) == 2 else []
    if has_spread(latency) and holds_zero(latency):
        remarks.append(NO_LATENCY)
    residuals = _fit_residuals(points, shapes, seconds)
    tests = COMPONENTS * _spare(shapes)
    fit_misfit = _largest_misfit(residuals, tests, subject="the exchange")
    misfit = _worst(_below_zero(latency, per_byte), fit_misfit)
    return _Link(latency, per_byte, sent_bytes, tuple(remarks), misfit)


def _link_of_one_point(point: Point, seconds: Uncertain, shape: Sequence[float]) -> _Link:
    """An exchange of one number tells latency from bandwidth.

    Without it, half of the draws are all latency and half are all bandwidth."""
    messages, volume = shape
    if point.latency is not None and _is_surely_longer(seconds, point.latency):
        per_byte = (seconds - point.latency) / volume
        latency = point.latency / messages
        return _Link(latency, per_byte, point.exchanged_bytes, (ONE_NUMBER,))
    share = np.resize([0.0, 1.0], len(seconds))
    share[0] = 0.5
    latency = share * seconds / messages
    per_byte = (1 - share) * seconds / volume
    return _Link(latency, per_byte, point.exchanged_bytes, (EITHER,))


def _is_surely_longer(seconds: Uncertain, latency: Uncertain) -> bool:
    """Whether it is longer and the interval of the difference, if there is one, excludes zero."""
    difference = seconds - latency
    is_longer = bool(latency[0] < seconds[0])
    return is_longer and not (has_spread(difference) and holds_zero(difference))


def _below_zero(*terms: Uncertain) -> Misfit:
    """A misfit if a term is negative and its interval, if it has one, excludes zero."""
    for term in terms:
        if term[0] < 0 and not (has_spread(term) and holds_zero(term)):
            return BELOW_ZERO
    return NO_MISFIT


class _Residual(NamedTuple):
    devices: int
    share: Uncertain  # of what was measured


def _spare(shapes: Shapes) -> int:
    """Degrees of freedom that are left to check a fit."""
    return len(shapes) - len(shapes[0])


def _fit_residuals(
    points: Sequence[Point], shapes: Shapes, values: Sequence[Uncertain]
) -> list[_Residual]:
    """None if the fit has as many factors as there are values."""
    if _spare(shapes) <= 0:
        return []
    factors = fit_factors(shapes, values)
    residuals = []
    for point, row, value in zip(points, shapes, values, strict=True):
        total = sum(size * factor for size, factor in zip(row, factors, strict=True))
        residuals.append(_Residual(point.devices, total / value - 1))
    return residuals


def _largest_misfit(residuals: Sequence[_Residual], tests: int, *, subject: str = "it") -> Misfit:
    """The largest residual whose interval excludes zero. More tests make the intervals wider."""
    misfits = []
    for residual in residuals:
        if not holds_zero(residual.share, ALPHA / tests):
            misfits.append(_misfit(residual, subject))
    return _worst(*misfits)


def _misfit(residual: _Residual, subject: str) -> Misfit:
    low, high = interval_ends(residual.share)
    share = float(residual.share[0])
    size = f"{percent(share)} ({percent(low)} … {percent(high)})"
    return Misfit(share, f"at {residual.devices} devices {subject} is {size} off the measurement")


def _worst(*misfits: Misfit) -> Misfit:
    return max(misfits, key=lambda misfit: abs(misfit.share), default=NO_MISFIT)


def _devices(points: Sequence[Point]) -> tuple[int, ...]:
    return tuple(point.devices for point in points)


def _too_few(name: str, points: Sequence[Point]) -> NoLaw:
    usable = ", ".join(str(point.devices) for point in points) or "none"
    return NoLaw(
        name,
        "too few numbers of devices that are measured in full and not oversubscribed: " + usable,
    )
