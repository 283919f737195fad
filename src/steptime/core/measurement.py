"""The times of one process: raw timestamps and side channels. All statistics follow from these."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Any

# NVML: hardware slowdown, software thermal, hardware thermal, power brake.
THERMAL_REASONS = 0x8 | 0x20 | 0x40 | 0x80


@dataclass(frozen=True, kw_only=True)
class Block:
    """Consecutive samples. Side channels are differences between its two ends.

    None: this system does not provide it."""

    samples: int
    host_ns: int  # by the host's clock, with the final wait for the device
    dispatch_ns: int  # the same without the final wait
    cpu_ns: int
    faults: int
    major_faults: int
    switches: int
    involuntary_switches: int
    # Ready to run but not running: of the thread that waited longest in this block.
    queue_ns: int | None = None
    # CPU pressure, 0…1: the share of time in which some task waited for a CPU.
    pressure: float | None = None
    swap_ins: int | None = None
    gc_ns: int = 0
    compilations: int = 0
    # Before the block: a partner's turn or a self-check, which is in no sample.
    idle_ns: int = 0
    # sm_clock_mhz, power_w, temperature_c, energy_mj, reasons (bits)
    gpu: dict[str, float] | None = None


@dataclass(frozen=True, kw_only=True)
class RankSamples:
    """The same samples as one of several ranks saw them, by its own clock."""

    rank: int
    node: str
    stamps: Sequence[int]  # ns; one more than there are samples, without the pauses
    device_ns: Sequence[int] | None
    idle_ns: tuple[int, ...]  # the pause before each block
    cpu_ns: int  # of all blocks together
    queue_ns: int | None
    cut: int
    steady: bool
    threads: int | None = None
    device: str = ""  # that it computed on
    # Added to its clock, this gives rank 0's clock, at the first and at the last stamp. It is 0 on
    # the same host.
    offset_ns: tuple[int, int] = (0, 0)
    offset_error_ns: int = 0

    def __post_init__(self) -> None:
        _pack(self)

    @property
    def queue_share(self) -> float | None:
        """Share of the time in which it was ready but not running, warm-up included."""
        if self.queue_ns is None:
            return None
        return self.queue_ns / max(1, self.stamps[-1] - self.stamps[0])

    def to_dict(self) -> dict[str, Any]:
        """With differences of stamps, which compress well."""
        values = dict(vars(self))
        values["stamps"] = self.stamps[0]
        values["deltas"] = [end - start for start, end in pairwise(self.stamps)]
        values["device_ns"] = None if self.device_ns is None else list(self.device_ns)
        return values

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> RankSamples:
        """Fields that a later version added are skipped."""
        fields = {name: value for name, value in values.items() if name in cls.__dataclass_fields__}
        fields["stamps"] = tuple(accumulate(values["deltas"], initial=values["stamps"]))
        fields["idle_ns"] = tuple(values["idle_ns"])
        fields["offset_ns"] = tuple(values["offset_ns"])
        return cls(**fields)


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One fresh process, or several ranks: then a step takes as long as on the slowest rank.

    Samples are contiguous: their sum is the time from the first stamp to the last."""

    group: int  # steps in one sample
    stamps: Sequence[int]  # host clock, ns; one more than there are samples
    device_ns: Sequence[int] | None  # the same samples by the device's own clock
    blocks: tuple[Block, ...]
    cut: int  # samples before this one are warm-up
    steady: bool  # False: no steady state was found, and the second half is kept
    clock: dict[str, Any]  # cost_ns, resolution_ns, source, drift
    starts: dict[str, float]  # seconds: import, build, first_step, compile
    checks: dict[str, float] = field(default_factory=dict)  # latency_ratio, closure, …
    memory: dict[str, int] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    steal_share: float | None = None
    # CPUs that other processes used on average, of those on which this process could run.
    others_share: float | None = None
    # If there are several. Blocks, checks and memory are then those of rank 0.
    ranks: tuple[RankSamples, ...] = ()

    def __post_init__(self) -> None:
        _pack(self)

    @property
    def samples_ns(self) -> tuple[int, ...]:
        """Durations of all samples, warm-up included; by the device's clock if it has one."""
        if self.device_ns is not None:
            return tuple(self.device_ns)
        return tuple(end - start for start, end in pairwise(self.stamps))

    @property
    def raw_samples(self) -> RawSamples:
        host_ns = array("q", (end - start for start, end in pairwise(self.stamps)))
        return RawSamples(host_ns=host_ns, device_ns=self.device_ns, group=self.group, cut=self.cut)

    def to_dict(self) -> dict[str, Any]:
        values = asdict(replace(self, ranks=()))
        values["stamps"] = list(self.stamps)
        values["device_ns"] = None if self.device_ns is None else list(self.device_ns)
        values["ranks"] = [rank.to_dict() for rank in self.ranks]
        return values


@dataclass(frozen=True, kw_only=True)
class RawSamples:
    """Times of samples without any judgement: of a measurement, or what a failed attempt left.

    None: the line that would say so was never written."""

    host_ns: Sequence[int]
    device_ns: Sequence[int] | None
    group: int | None  # steps in one sample
    cut: int | None  # samples before this one are warm-up


def _pack(samples: RankSamples | Measurement) -> None:
    """A million samples take 8 MB this way, and 40 MB as a tuple of Python's integers."""
    object.__setattr__(samples, "stamps", array("q", samples.stamps))
    if samples.device_ns is not None:
        object.__setattr__(samples, "device_ns", array("q", samples.device_ns))
