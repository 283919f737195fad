"""What the clock said in one process: raw stamps and side channels. Every statistic is derived from these."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Block:
    """Consecutive samples; side channels are differences between its two ends. None: this system does not tell."""

    samples: int
    host_ns: int  # by the host's clock, the final wait for the device included
    dispatch_ns: int  # the same without the final wait
    cpu_ns: int
    faults: int
    major_faults: int
    switches: int
    involuntary_switches: int
    queue_ns: int | None = None  # time spent ready to run but not running
    pressure: float | None = (
        None  # CPU pressure, 0…1: share of time that some task waited for a CPU
    )
    swap_ins: int | None = None
    gc_ns: int = 0
    compilations: int = 0
    idle_ns: int = (
        0  # before the block: a partner's turn or a self-check, while the clock stood still
    )
    gpu: dict[str, float] | None = (
        None  # sm_clock_mhz, power_w, temperature_c, energy_mj, reasons (bits)
    )


@dataclass(frozen=True, kw_only=True)
class RankSamples:
    """What one of several ranks saw of the same samples, by its own clock."""

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
    # What is added to its clock to have rank 0's, at the first stamp and at the last; 0 on the same host.
    offset_ns: tuple[int, int] = (0, 0)
    offset_error_ns: int = 0

    def __post_init__(self) -> None:
        _pack(self)

    def to_dict(self) -> dict[str, Any]:
        """Stamps as differences, which is what compresses."""
        device = None if self.device_ns is None else list(self.device_ns)
        deltas = [b - a for a, b in pairwise(self.stamps)]
        return {**vars(self), "stamps": self.stamps[0], "deltas": deltas, "device_ns": device}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> RankSamples:
        known = {name: value for name, value in values.items() if name in cls.__dataclass_fields__}
        stamps = tuple(accumulate(values["deltas"], initial=values["stamps"]))
        lists = {name: tuple(values[name]) for name in ("idle_ns", "offset_ns")}
        return cls(**{**known, **lists, "stamps": stamps})


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One fresh process, or several ranks: then a step is the slowest one's. Samples tile the clock: their sum is the
    time from the first stamp to the last."""

    group: int  # steps in one sample
    stamps: Sequence[int]  # host clock, ns; one more than there are samples
    device_ns: Sequence[int] | None  # the same samples by the device's own clock
    blocks: tuple[Block, ...]
    cut: int  # samples before this one are warm-up
    steady: bool  # False: no steady state was found, the second half is kept
    clock: dict[str, Any]  # cost_ns, resolution_ns, source, drift
    starts: dict[str, float]  # seconds: import, build, first_step, compile
    checks: dict[str, float] = field(
        default_factory=dict
    )  # latency_ratio, closure, event_cost_ns …
    memory: dict[str, int] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    steal_share: float | None = None
    ranks: tuple[RankSamples, ...] = ()  # of several; blocks, checks and memory are those of rank 0

    def __post_init__(self) -> None:
        _pack(self)

    @property
    def samples_ns(self) -> tuple[int, ...]:
        """Durations of all samples, warm-up included; the device's clock where it has one."""
        if self.device_ns is not None:
            return tuple(self.device_ns)
        return tuple(b - a for a, b in pairwise(self.stamps))

    @property
    def kept_ns(self) -> tuple[int, ...]:
        return self.samples_ns[self.cut :]

    @property
    def kept_blocks(self) -> tuple[Block, ...]:
        """Blocks that lie wholly behind the cut; all of them when the cut is inside the last one."""
        kept, first = [], 0
        for block in self.blocks:
            if first >= self.cut:
                kept.append(block)
            first += block.samples
        return tuple(kept) or self.blocks[-1:]

    def to_dict(self) -> dict[str, Any]:
        device = None if self.device_ns is None else list(self.device_ns)
        ranks = [rank.to_dict() for rank in self.ranks]
        return {
            **asdict(replace(self, ranks=())),
            "stamps": list(self.stamps),
            "device_ns": device,
            "ranks": ranks,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Measurement:
        ranks = tuple(map(RankSamples.from_dict, values.get("ranks", ())))
        return cls(
            **{
                **values,
                "blocks": tuple(Block(**block) for block in values["blocks"]),
                "ranks": ranks,
            }
        )


def _pack(samples: RankSamples | Measurement) -> None:
    """A million samples are 8 MB this way, and 40 MB as a tuple of Python's own numbers."""
    object.__setattr__(samples, "stamps", array("q", samples.stamps))
    if samples.device_ns is not None:
        object.__setattr__(samples, "device_ns", array("q", samples.device_ns))
