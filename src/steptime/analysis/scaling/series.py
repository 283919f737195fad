"""Weak and strong series of measured records: what more devices bring, what their exchange costs.

Every step is measured with the exchange and, independently, without it. The difference is the
exposed part of the exchange: it holds no contention for memory or caches, which both suffer.
Does no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from steptime.analysis.scaling.draws import Uncertain, draw_typical
from steptime.analysis.scaling.pause_cost import NO_COST, PauseCost, pause_cost
from steptime.analysis.stopping import counted_processes
from steptime.core.case import ALL_REDUCE, Case
from steptime.core.errors import SteptimeError
from steptime.core.record import Attempt, Record

GROWING = ("devices", "nodes", "batch_size", "exchange")
LINKS = ("interconnect", "launch")
ALONE = "none"
INDEPENDENT = "independent"


class Setup(NamedTuple):
    """What differs between the records of a group."""

    devices: int
    batch: int  # of each device
    exchange: str

    def held_batch(self, kind: str) -> int:
        """The batch that all points of a series share: per device (weak) or in total (strong)."""
        return self.batch if kind == "weak" else self.batch * self.devices


@dataclass(frozen=True, kw_only=True)
class Point:
    """One number of devices."""

    devices: int
    batch_size: int  # of each
    step: Uncertain
    # The same work without exchange; for one device, its step.
    independent: Uncertain | None
    # Of one step's gradients, and nothing else.
    exchange: Uncertain | None
    latency: Uncertain | None = None  # of an exchange of one number
    exchanged_bytes: int = 0
    # What a wait costs the step after it.
    pause_cost: PauseCost = NO_COST
    # Why its ranks do not fit the machine; empty if they do.
    oversubscribed: str = ""

    @property
    def exposed(self) -> Uncertain | None:
        """How much longer a step takes because of the exchange. Noise below zero stays visible."""
        if self.independent is None or self.devices == 1:
            return None
        return self.step - self.independent

    @property
    def overlapped(self) -> Uncertain | None:
        """The part of the exchange that computing hides.

        Below zero if a step pays more than the exchange."""
        if self.exposed is None or self.exchange is None:
            return None
        return self.exchange - self.exposed

    @property
    def wait(self) -> Uncertain | None:
        """The exposed part without the cost of a wait for the step after it."""
        if self.exposed is None or self.independent is None:
            return None
        return self.pause_cost.wait_seconds(self.exposed, self.independent)

    @property
    def bandwidth(self) -> Uncertain | None:
        """Bytes per second on each link of a ring: a device sends 2 (N − 1) / N of the bytes."""
        if self.exchange is None:
            return None
        return ring_share(self.devices) * self.exchanged_bytes / self.exchange

    @property
    def link(self) -> Uncertain | None:
        """The same without the latency. None: more bytes take no longer."""
        if self.exchange is None or self.latency is None or self.exchange[0] <= self.latency[0]:
            return None
        transfer = self.exchange - self.latency
        with np.errstate(divide="ignore"):
            rate = ring_share(self.devices) * self.exchanged_bytes / transfer
        bandwidth: Uncertain = np.where(transfer <= 0, np.inf, rate)
        return bandwidth


@dataclass(frozen=True)
class Series:
    # Weak: a fixed batch per device; strong: a fixed batch of all devices.
    kind: str
    exchange: str
    case: Case  # with the most devices
    points: tuple[Point, ...]

    @property
    def first(self) -> Point:
        return self.points[0]

    @cached_property
    def clean(self) -> tuple[Point, ...]:
        """Points that a law may be fitted to: ranks that share a CPU say nothing of more CPUs."""
        return tuple(point for point in self.points if not point.oversubscribed)

    def batch_size(self, devices: int) -> float:
        """Of each device."""
        batch = self.first.batch_size
        return batch if self.kind == "weak" else batch * self.first.devices / devices

    def speed_up(self, devices: int, step: Uncertain) -> Uncertain:
        """Throughput of all devices over that of the fewest devices."""
        more = devices * self.batch_size(devices) / (self.first.devices * self.first.batch_size)
        return more * self.first.step / step

    def efficiency(self, devices: int, step: Uncertain) -> Uncertain:
        return self.speed_up(devices, step) * self.first.devices / devices


def ring_share(devices: int) -> float:
    return 2 * (devices - 1) / devices


def plan_cases(case: Case, counts: Sequence[int], kinds: Iterable[str]) -> Iterator[Case]:
    """Each number of devices with the exchange and without it; one device exchanges nothing."""
    shared = case.exchange if case.exchange in ALL_REDUCE else ALL_REDUCE[0]
    for kind in kinds:
        for count in counts:
            batch = _batch_per_device(case.batch_size, count) if kind == "strong" else None
            exchanges = (shared, INDEPENDENT) if count > 1 else (ALONE,)
            for exchange in exchanges:
                yield replace(
                    case,
                    devices=count,
                    batch_size=case.batch_size if batch is None else batch,
                    nodes=min(case.nodes, count),
                    exchange=exchange,
                )


def _batch_per_device(batch_size: int, devices: int) -> int:
    batch, rest = divmod(batch_size, devices)
    if rest or not batch:
        nearest = devices * max(1, round(batch_size / devices))
        raise SteptimeError(
            f"A batch of {batch_size} cannot be shared evenly by {devices} devices: "
            f"choose another with --set batch_size={nearest}."
        )
    return batch


def share_threads(case: Case, counts: Sequence[int], cpus: int) -> Case:
    """On the CPU every rank of a series has the same threads: so many that all ranks have room."""
    if case.device != "cpu" or case.threads:
        return case
    return replace(case, threads=max(1, cpus * case.nodes // max(counts)))


def select_cases(cases: Sequence[Case], kinds: Iterable[str]) -> list[Case]:
    """Cases that belong to a series of one of these kinds, with two numbers of devices or more.

    None if nothing is exchanged."""
    if not any(_exchanges(case) for case in cases):
        return []
    chosen_kinds = tuple(kinds)
    keys: dict[Case, list[tuple[str, str, int]]] = {}
    ranks: dict[tuple[str, str, int], set[int]] = {}
    for case in cases:
        setup = Setup(case.ranks, case.batch_size, case.exchange)
        fixed = _fixed_settings(case, LINKS)
        keys[case] = [(kind, fixed, setup.held_batch(kind)) for kind in chosen_kinds]
        for key in keys[case]:
            ranks.setdefault(key, set()).add(case.ranks)
    return [case for case in cases if any(len(ranks[key]) > 1 for key in keys[case])]


def find_series(records: Iterable[Record], *, seed: int = 0) -> list[Series]:
    """Every series of two numbers of devices or more, the longest first."""
    measured = [record for record in records if record.measurements]
    models: dict[str, Case] = {}
    for record in measured:
        if _exchanges(record.case):
            models[_fixed_settings(record.case)] = record.case
    draws = _Draws(np.random.default_rng(seed))
    series: list[Series] = []
    for case in models.values():
        series += _Group(case, measured, draws).series()
    return sorted(series, key=lambda row: (-len(row.points), row.kind != "weak"))


class _Draws:
    """Draws each record once, so that series which share a record share its draws."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.drawn: dict[tuple[str, ...], Uncertain] = {}
        self.pause_costs: dict[str, PauseCost] = {}

    def step(self, record: Record) -> Uncertain:
        key = ("step", record.attempts[0].id)
        processes = counted_processes(record.attempts)
        return self._draw(key, [process.typical for process in processes])

    def exchange(self, attempts: Sequence[Attempt]) -> Uncertain:
        key = ("exchange", *(attempt.id for attempt in attempts))
        findings = [attempt.findings["exchange"] for attempt in attempts]
        return self._draw(key, [float(np.median(finding["seconds"])) for finding in findings])

    def latency(self, attempts: Sequence[Attempt]) -> Uncertain:
        """Of an exchange of one number."""
        key = ("tiny", *(attempt.id for attempt in attempts))
        findings = [attempt.findings["exchange"]["tiny"] for attempt in attempts]
        return self._draw(key, [float(np.median(finding["seconds"])) for finding in findings])

    def pause_cost(self, record: Record) -> PauseCost:
        key = record.attempts[0].id
        if key not in self.pause_costs:
            measured = [attempt for attempt in record.attempts if attempt.measurement]
            self.pause_costs[key] = pause_cost(measured, self.rng)
        return self.pause_costs[key]

    def _draw(self, key: tuple[str, ...], seconds: Sequence[float]) -> Uncertain:
        if key not in self.drawn:
            self.drawn[key] = draw_typical(seconds, self.rng)
        return self.drawn[key]


class _Group:
    """Records that differ from the case in nothing but devices, batch and exchange."""

    def __init__(self, case: Case, records: Sequence[Record], draws: _Draws) -> None:
        self.draws = draws
        self.records: dict[Setup, Record] = {}
        fixed = _fixed_settings(case)
        fitting = [record for record in records if _fits(record.case, case)]
        # Records with the same links come last, and so replace those with other links.
        fitting.sort(key=lambda record: _fixed_settings(record.case) == fixed)
        for record in fitting:
            setup = _setup(record.case)
            _refuse_other_nodes(record, self.records.get(setup))
            self.records[setup] = record

    def series(self) -> Iterator[Series]:
        cases = [record.case for record in self.records.values()]
        exchanges = sorted({case.exchange for case in cases if _exchanges(case)})
        for kind in ("weak", "strong"):
            for held_batch in sorted({setup.held_batch(kind) for setup in self.records}):
                for exchange in exchanges:
                    series = self._series(kind, held_batch, exchange)
                    if series is not None:
                        yield series

    def _series(self, kind: str, held_batch: int, exchange: str) -> Series | None:
        setups: dict[int, Setup] = {}
        for setup in self.records:
            if setup.held_batch(kind) == held_batch and setup.exchange in (exchange, ALONE):
                setups[setup.devices] = setup
        if len(setups) < 2:
            return None
        points = [self._point(setups[devices], exchange) for devices in sorted(setups)]
        largest = self.records[setups[max(setups)]]
        return Series(kind, exchange, largest.case, tuple(points))

    def _point(self, setup: Setup, exchange: str) -> Point:
        """The order of the draws is part of the result: equal records give equal intervals."""
        record = self.records[setup]
        beside = setup._replace(exchange=INDEPENDENT) if setup.devices > 1 else setup
        independent = self.records.get(beside)
        attempts = self._exchange_attempts(setup.devices, exchange)
        tiny = [attempt for attempt in attempts if "tiny" in attempt.findings["exchange"]]
        return Point(
            devices=setup.devices,
            batch_size=setup.batch,
            step=self.draws.step(record),
            independent=self.draws.step(independent) if independent else None,
            pause_cost=self.draws.pause_cost(independent) if independent else NO_COST,
            exchange=self.draws.exchange(attempts) if attempts else None,
            latency=self.draws.latency(tiny) if tiny else None,
            exchanged_bytes=attempts[0].findings["exchange"]["bytes"] if attempts else 0,
            oversubscribed=oversubscription(record),
        )

    def _exchange_attempts(self, devices: int, exchange: str) -> list[Attempt]:
        """Attempts that measured this exchange, at any batch: gradients have the same size."""
        attempts = []
        for setup, record in self.records.items():
            if (setup.devices, setup.exchange) == (devices, exchange):
                for attempt in record.attempts:
                    finding = attempt.findings.get("exchange", {})
                    if attempt.measurement and finding.get("seconds"):
                        attempts.append(attempt)
        return attempts


def _refuse_other_nodes(record: Record, earlier: Record | None) -> None:
    """A series with the same setup on several numbers of nodes would mix two machines."""
    if earlier is None or record.case.ranks == 1:
        return
    if earlier.case.nodes != record.case.nodes:
        label = record.case.label
        raise SteptimeError(
            f"{label} was measured on several numbers of nodes: choose one with --set nodes=…"
        )


def _exchanges(case: Case) -> bool:
    return case.ranks > 1 and case.exchange != INDEPENDENT


def _fixed_settings(case: Case, without: Sequence[str] = ()) -> str:
    """Settings in which the records of a series agree."""
    settings = asdict(case)
    for name in (*GROWING, *without):
        del settings[name]
    return repr(settings)


def _fits(case: Case, series: Case) -> bool:
    """Without exchange the interconnect does not matter; for a single rank nor does the launch."""
    without: tuple[str, ...] = ()
    if case.ranks == 1:
        without = LINKS
    elif not _exchanges(case):
        without = ("interconnect",)
    return _fixed_settings(case, without) == _fixed_settings(series, without)


def _setup(case: Case) -> Setup:
    return Setup(case.ranks, case.batch_size, case.exchange if case.ranks > 1 else ALONE)


def oversubscription(record: Record) -> str:
    """Why the ranks of a host need more CPUs or GPUs than it has; empty if they do not."""
    case = record.case
    machine = record.last.machine
    ranks = case.ranks_per_node
    if case.device != "cpu":
        gpus = len(machine.get("gpus") or ())
        return f"{ranks} ranks on {gpus} GPU{'s' if gpus > 1 else ''}" if 0 < gpus < ranks else ""
    pinned_cpus = len(record.last.environment.get("cpus") or ())
    cpus = pinned_cpus or machine.get("threads_usable") or 0
    threads = ranks * case.threads_of(cpus)
    return f"{threads} threads on {cpus} CPUs" if 0 < cpus < threads else ""
