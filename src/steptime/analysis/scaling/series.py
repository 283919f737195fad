"""Weak and strong series of measured records: what more devices bring, and what their exchange costs. Does no I/O.

Every step is measured with the exchange and, side by side, without it. The difference is what of the exchange is
exposed: it holds no contention for memory or caches, which both suffer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property

import numpy as np

from steptime.analysis.process import measured_processes
from steptime.analysis.scaling.draws import Uncertain, measured
from steptime.analysis.scaling.pause_cost import FREE, Waiting, waiting
from steptime.analysis.stopping import set_aside
from steptime.core.case import ALL_REDUCE, Case
from steptime.core.errors import SteptimeError
from steptime.core.record import Attempt, Record

GROWING = ("devices", "nodes", "batch_size", "exchange")
LINKS = ("interconnect", "launch")
ALONE, SIDE_BY_SIDE = "none", "independent"
Place = tuple[int, int, str]
"""Ranks, the batch of each, how they exchange."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """One number of devices."""

    devices: int
    batch_size: int  # of each
    step: Uncertain
    independent: Uncertain | None  # the same shapes side by side; of one device, its step
    exchange: Uncertain | None  # of one step's gradients, and nothing else
    latency: Uncertain | None = None  # of an exchange of one number
    exchanged_bytes: int = 0
    waiting: Waiting = FREE  # what a wait costs the step behind it
    crowded: str = ""  # why its ranks are more than the machine can hold; empty: they are not

    @property
    def exposed(self) -> Uncertain | None:
        """What a step takes longer because of the exchange. Below zero is noise, or a doubt, and stays visible."""
        return (
            None if self.independent is None or self.devices == 1 else self.step - self.independent
        )

    @property
    def overlapped(self) -> Uncertain | None:
        """What of the exchange is hidden behind computing; below zero where a step pays more than the exchange."""
        return (
            None if self.exposed is None or self.exchange is None else self.exchange - self.exposed
        )

    @property
    def waited(self) -> Uncertain | None:
        """The exposed part without what a wait costs the step behind it."""
        if self.exposed is None or self.independent is None:
            return None
        return self.waiting.wait(self.exposed, self.independent)

    @property
    def bandwidth(self) -> Uncertain | None:
        """Bytes a second that each link carries, as a ring would: every device sends 2 (N − 1) / N of the bytes."""
        return (
            None
            if self.exchange is None
            else ring_share(self.devices) * self.exchanged_bytes / self.exchange
        )

    @property
    def link(self) -> Uncertain | None:
        """The same behind the latency: what more bytes would take. None: more of them take no longer."""
        if self.exchange is None or self.latency is None or self.exchange[0] <= self.latency[0]:
            return None
        left = self.exchange - self.latency
        with np.errstate(divide="ignore"):
            rate = ring_share(self.devices) * self.exchanged_bytes / left
        found: Uncertain = np.where(left <= 0, np.inf, rate)
        return found


@dataclass(frozen=True)
class Series:
    kind: str  # weak: the batch of each device stays; strong: that of all together
    exchange: str
    case: Case  # with the most devices
    points: tuple[Point, ...]

    @property
    def first(self) -> Point:
        return self.points[0]

    @cached_property
    def clean(self) -> tuple[Point, ...]:
        """Those that a law may be fitted to: ranks that take turns on a CPU say nothing of a larger machine."""
        return tuple(point for point in self.points if not point.crowded)

    def batch_size(self, devices: int) -> float:
        """Of each device."""
        own = self.first.batch_size
        return own if self.kind == "weak" else own * self.first.devices / devices

    def speed_up(self, devices: int, step: Uncertain) -> Uncertain:
        """Throughput of all devices together against that of the fewest."""
        more = devices * self.batch_size(devices) / (self.first.devices * self.first.batch_size)
        return more * self.first.step / step

    def efficiency(self, devices: int, step: Uncertain) -> Uncertain:
        return self.speed_up(devices, step) * self.first.devices / devices


def ring_share(devices: int) -> float:
    return 2 * (devices - 1) / devices


def planned(case: Case, counts: Sequence[int], kinds: Iterable[str]) -> Iterator[Case]:
    """Each number of devices with the exchange and without it; one device has nobody to exchange with."""
    shared = case.exchange if case.exchange in ALL_REDUCE else ALL_REDUCE[0]
    for kind in kinds:
        for count in counts:
            each, rest = (
                divmod(case.batch_size, count) if kind == "strong" else (case.batch_size, 0)
            )
            if rest or not each:
                raise SteptimeError(
                    f"A batch of {case.batch_size} cannot be shared evenly by {count} devices: "
                    f"choose another with --set batch_size={count * max(1, round(case.batch_size / count))}."
                )
            words = (shared, SIDE_BY_SIDE) if count > 1 else (ALONE,)
            settings = {
                **asdict(case),
                "devices": count,
                "batch_size": each,
                "nodes": min(case.nodes, count),
            }
            yield from (Case(**{**settings, "exchange": word}) for word in words)


def shared_threads(case: Case, counts: Sequence[int], cpus: int) -> Case:
    """On the CPU every rank of a series has the same threads: as many as leave room for the largest number of ranks."""
    if case.device != "cpu" or case.threads:
        return case
    return replace(case, threads=max(1, cpus * case.nodes // max(counts)))


def of_kinds(cases: Sequence[Case], kinds: Iterable[str]) -> list[Case]:
    """Those that share their batch, as such a series holds it, with a case of another number of devices; none where
    nothing is exchanged."""
    if not any(map(_exchanges, cases)):
        return []
    ranks: dict[tuple[str, str, int], set[int]] = {}
    chosen = tuple(kinds)
    keys = {
        case: [
            (kind, _same(case, LINKS), _held(kind, case.ranks, case.batch_size)) for kind in chosen
        ]
        for case in cases
    }
    for case in cases:
        for key in keys[case]:
            ranks.setdefault(key, set()).add(case.ranks)
    return [case for case in cases if any(len(ranks[key]) > 1 for key in keys[case])]


def found(records: Iterable[Record], *, seed: int = 0) -> list[Series]:
    """Every series of two numbers of devices or more, the longest first."""
    measured = [record for record in records if record.measurements]
    models = {_same(record.case): record.case for record in measured if _exchanges(record.case)}
    numbers = _Numbers(np.random.default_rng(seed))
    series = [one for case in models.values() for one in _Group(case, measured, numbers).series()]
    return sorted(series, key=lambda one: (-len(one.points), one.kind != "weak"))


class _Numbers:
    """Of each record once, however many series it belongs to: what they share is then not drawn twice."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.known: dict[tuple[str, ...], Uncertain] = {}
        self.waits: dict[str, Waiting] = {}

    def step(self, record: Record) -> Uncertain:
        everyone = measured_processes(record.attempts)
        aside = set_aside(everyone)
        parts = [part for part in everyone if part.attempt.id not in aside]
        return self._drawn(("step", record.attempts[0].id), [part.typical for part in parts])

    def exchange(self, attempts: Sequence[Attempt], *, tiny: bool = False) -> Uncertain:
        told = [attempt.findings["exchange"] for attempt in attempts]
        medians = [
            float(np.median(one["tiny"]["seconds"] if tiny else one["seconds"])) for one in told
        ]
        return self._drawn(
            ("tiny" if tiny else "exchange", *(attempt.id for attempt in attempts)), medians
        )

    def waiting(self, record: Record) -> Waiting:
        first = record.attempts[0].id
        if first not in self.waits:
            self.waits[first] = waiting(
                [attempt for attempt in record.attempts if attempt.measurement], self.rng
            )
        return self.waits[first]

    def _drawn(self, key: tuple[str, ...], seconds: Sequence[float]) -> Uncertain:
        if key not in self.known:
            self.known[key] = measured(seconds, self.rng)
        return self.known[key]


class _Group:
    """Records that differ from the case in nothing but devices, batch and exchange."""

    def __init__(self, case: Case, records: Sequence[Record], numbers: _Numbers) -> None:
        self.numbers = numbers
        self.records: dict[Place, Record] = {}
        for record in sorted(
            (r for r in records if _fits(r.case, case)), key=lambda r: _same(r.case) == _same(case)
        ):
            before = self.records.get(place := _place(record.case))
            if (
                before is not None
                and before.case.nodes != record.case.nodes
                and record.case.ranks > 1
            ):
                told = f"{record.case.label} was measured on several numbers of nodes"
                raise SteptimeError(f"{told}: choose one with --set nodes=…")
            self.records[place] = record

    def series(self) -> Iterator[Series]:
        words = sorted(
            {record.case.exchange for record in self.records.values() if _exchanges(record.case)}
        )
        for kind in ("weak", "strong"):
            for held in sorted({_held(kind, devices, batch) for devices, batch, _ in self.records}):
                yield from (one for word in words if (one := self._one(kind, held, word)))

    def _one(self, kind: str, held: int, word: str) -> Series | None:
        chosen = {
            p[0]: p
            for p in self.records
            if _held(kind, p[0], p[1]) == held and p[2] in (word, ALONE)
        }
        if len(chosen) < 2:
            return None
        points = [self._point(chosen[devices], word) for devices in sorted(chosen)]
        return Series(kind, word, self.records[chosen[max(chosen)]].case, tuple(points))

    def _point(self, place: Place, word: str) -> Point:
        devices, batch, _ = place
        beside = (devices, batch, SIDE_BY_SIDE) if devices > 1 else place
        told = self._told(devices, word)
        tiny = [attempt for attempt in told if "tiny" in attempt.findings["exchange"]]
        return Point(
            devices=devices,
            batch_size=batch,
            step=self.numbers.step(self.records[place]),
            independent=self.numbers.step(self.records[beside]) if beside in self.records else None,
            waiting=self.numbers.waiting(self.records[beside]) if beside in self.records else FREE,
            exchange=self.numbers.exchange(told) if told else None,
            latency=self.numbers.exchange(tiny, tiny=True) if tiny else None,
            exchanged_bytes=told[0].findings["exchange"]["bytes"] if told else 0,
            crowded=crowded(self.records[place]),
        )

    def _told(self, devices: int, word: str) -> list[Attempt]:
        """Gradients are as large whatever the batch, so that all processes with as many devices tell of an exchange."""
        records = [
            record
            for (count, _, said), record in self.records.items()
            if (count, said) == (devices, word)
        ]
        attempts = [
            attempt for record in records for attempt in record.attempts if attempt.measurement
        ]
        return [
            attempt for attempt in attempts if attempt.findings.get("exchange", {}).get("seconds")
        ]


def _exchanges(case: Case) -> bool:
    return case.ranks > 1 and case.exchange != SIDE_BY_SIDE


def _same(case: Case, without: Sequence[str] = ()) -> str:
    return repr(
        {name: value for name, value in asdict(case).items() if name not in (*GROWING, *without)}
    )


def _fits(case: Case, series: Case) -> bool:
    """What exchanges nothing does not know what it is linked by, and a single rank not who starts the others."""
    without = () if _exchanges(case) else ("interconnect",) if case.ranks > 1 else LINKS
    return _same(case, without) == _same(series, without)


def _place(case: Case) -> Place:
    return case.ranks, case.batch_size, case.exchange if case.ranks > 1 else ALONE


def _held(kind: str, devices: int, batch: int) -> int:
    return batch if kind == "weak" else batch * devices


def crowded(record: Record) -> str:
    """Why the ranks of a host are more than its CPUs or GPUs; empty where they are not."""
    case, machine = record.case, record.last.machine
    ranks = case.ranks_per_node
    if case.device != "cpu":
        boards = len(machine.get("gpus") or ())
        return f"{ranks} ranks on {boards} GPU{'s' * (boards > 1)}" if 0 < boards < ranks else ""
    cpus = len(record.last.environment.get("cpus") or ()) or machine.get("threads_usable") or 0
    threads = ranks * case.threads_of(cpus)
    return f"{threads} threads on {cpus} CPUs" if 0 < cpus < threads else ""
