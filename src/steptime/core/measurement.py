"""What the clock said in one process: raw stamps and side channels. Every statistic is derived from these."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
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
    pressure: float | None = None  # CPU pressure, 0…1: share of time that some task waited for a CPU
    swap_ins: int | None = None
    gc_ns: int = 0
    compilations: int = 0
    idle_ns: int = 0  # before the block: a partner's turn or a self-check, while the clock stood still
    gpu: dict[str, float] | None = None  # sm_clock_mhz, power_w, temperature_c, energy_mj, reasons (bits)


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One fresh process. Samples tile the clock: their sum is the time from the first stamp to the last."""

    group: int  # steps in one sample
    stamps: Sequence[int]  # host clock, ns; one more than there are samples
    device_ns: Sequence[int] | None  # the same samples by the device's own clock
    blocks: tuple[Block, ...]
    cut: int  # samples before this one are warm-up
    steady: bool  # False: no steady state was found, the second half is kept
    clock: dict[str, Any]  # cost_ns, resolution_ns, source, drift
    starts: dict[str, float]  # seconds: import, build, first_step, compile
    checks: dict[str, float] = field(default_factory=dict)  # latency_ratio, closure, event_cost_ns …
    memory: dict[str, int] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    steal_share: float | None = None

    def __post_init__(self) -> None:
        """Packed: a million samples are 8 MB this way, and 40 MB as a tuple of Python's own numbers."""
        object.__setattr__(self, "stamps", array("q", self.stamps))
        if self.device_ns is not None:
            object.__setattr__(self, "device_ns", array("q", self.device_ns))

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
        return {**asdict(self), "stamps": list(self.stamps), "device_ns": device}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Measurement:
        return cls(**{**values, "blocks": tuple(Block(**block) for block in values["blocks"])})
