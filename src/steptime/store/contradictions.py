"""What in a journal contradicts itself: a sign of damage, of a copy, or of a forgery.

Only statements that hold for every measurement are checked. What makes a number doubtful, but can
happen, is a flag of the analysis."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import accumulate, pairwise
from operator import sub

from steptime.core.measurement import Block, Measurement
from steptime.core.record import Attempt

# The samples of a block add up to its time; stores of older versions may have rounded.
BLOCK_SHARE = 1e-4
BLOCK_NS = 1_000
# A device's events may begin a little before the host's clock does.
DEVICE_SHARE = 0.05
DEVICE_NS = 1_000_000
# Between two clocks: the journal's dates and the samples.
CLOCK_SECONDS = 1.0
CLOCK_SHARE = 0.02


def find_contradictions(attempt: Attempt) -> Iterator[str]:
    """Each as a clause: what says one thing, and what says another."""
    started = datetime.fromisoformat(attempt.started)
    lifetime = None
    if attempt.ended:
        lifetime = (datetime.fromisoformat(attempt.ended) - started).total_seconds()
        if lifetime < 0:
            yield f"it ended ({attempt.ended}) before it started ({attempt.started})"
    measurement = attempt.measurement
    if measurement is None:
        return
    yield from _count_contradictions(measurement)
    yield from _block_contradictions(measurement)
    yield from _device_contradictions(measurement)
    yield from _rank_contradictions(attempt, measurement)
    if lifetime is not None and lifetime >= 0:
        yield from _lifetime_contradictions(measurement, lifetime)


def _count_contradictions(measurement: Measurement) -> Iterator[str]:
    samples = len(measurement.stamps) - 1
    in_blocks = sum(block.samples for block in measurement.blocks)
    if in_blocks != samples:
        yield f"its blocks hold {in_blocks} samples, its end line counts {samples}"
    if not 0 <= measurement.cut < max(1, samples):
        yield f"warm-up ends at sample {measurement.cut} of {samples}"


def _block_contradictions(measurement: Measurement) -> Iterator[str]:
    """The first of each kind: a damaged file may have thousands."""
    stamps = measurement.stamps
    shortest_ns = min(map(sub, stamps[1:], stamps), default=0)
    if shortest_ns < 0:
        yield f"a sample takes {shortest_ns} ns: its stamps go backwards"
    edges = accumulate((block.samples for block in measurement.blocks), initial=0)
    for number, (block, (first, last)) in enumerate(
        zip(measurement.blocks, pairwise(edges), strict=True)
    ):
        if last >= len(stamps):
            return
        sum_ns = stamps[last] - stamps[first]
        if abs(sum_ns - block.host_ns) > BLOCK_NS + BLOCK_SHARE * abs(block.host_ns):
            yield (
                f"the samples of block {number} add up to {sum_ns} ns, "
                f"its host_ns is {block.host_ns}"
            )
            return
        if channel := _impossible_channel(block):
            yield f"block {number} has {channel}"
            return


def _impossible_channel(block: Block) -> str:
    for name in ("cpu_ns", "faults", "switches", "queue_ns", "gc_ns", "idle_ns", "swap_ins"):
        value = getattr(block, name)
        if value is not None and value < 0:
            return f"{name} {value}, below 0"
    if not 0 <= block.dispatch_ns <= block.host_ns:
        return f"dispatch_ns {block.dispatch_ns} outside 0 … host_ns ({block.host_ns})"
    if block.pressure is not None and not 0 <= block.pressure <= 1:
        return f"pressure {block.pressure} outside 0 … 1"
    return ""


def _device_contradictions(measurement: Measurement) -> Iterator[str]:
    if measurement.device_ns is None:
        return
    if min(measurement.device_ns, default=0) < 0:
        yield "the device needed less than 0 ns for a sample"
    device_ns = sum(measurement.device_ns)
    host_ns = measurement.stamps[-1] - measurement.stamps[0]
    if device_ns > host_ns * (1 + DEVICE_SHARE) + DEVICE_NS:
        yield f"the device worked {device_ns} ns in {host_ns} ns of the host"


def _rank_contradictions(attempt: Attempt, measurement: Measurement) -> Iterator[str]:
    ranks = measurement.ranks
    if not ranks:
        return
    numbers = [rank.rank for rank in ranks]
    if sorted(numbers) != list(range(attempt.case.ranks)):
        yield f"it has the ranks {numbers}, its case has {attempt.case.ranks}"
    for rank in ranks:
        if len(rank.stamps) != len(measurement.stamps):
            samples = len(rank.stamps) - 1
            yield f"rank {rank.rank} has {samples} samples of {len(measurement.stamps) - 1}"


def _lifetime_contradictions(measurement: Measurement, lifetime: float) -> Iterator[str]:
    pauses_ns = sum(block.idle_ns for block in measurement.blocks)
    seconds = (measurement.stamps[-1] - measurement.stamps[0] + pauses_ns) / 1e9
    if seconds > lifetime * (1 + CLOCK_SHARE) + CLOCK_SECONDS:
        yield f"its samples last {seconds:.2f} s, the process lived {lifetime:.2f} s"
