"""Two resident programs against each other: blocks in turns ours, theirs, theirs, ours, by two clocks."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from steptime.analysis.intervals import signed_rank

Step = Callable[[], Any]
ALPHA = 0.05


def nothing() -> None:
    """Where a step has ended when it returns."""


@dataclass(frozen=True)
class Pair:
    """Two steps of the same work from equal weights. `device_block(step, count)`: a block's seconds by the device."""

    ours: Step
    theirs: Step
    wait: Step = nothing
    array: Callable[[Any], Any] = np.asarray  # of what a step gives
    device_block: Callable[[Step, int], float] | None = None


@dataclass(frozen=True)
class Effort:
    block_seconds: float
    warm_seconds: float
    turns: int


@dataclass(frozen=True)
class Ratio:
    """Below 1 ours is faster."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True)
class Row:
    label: str
    ours_ms: float
    theirs_ms: float
    wall: Ratio
    processor: Ratio  # of processor time: what a machine shared with others disturbs less
    turns: int
    difference: float  # of the first results, relative: the same work
    first_ours_seconds: float
    first_theirs_seconds: float
    closure: float | None  # median |host / device − 1| of all blocks

    def __str__(self) -> str:
        closure = "" if self.closure is None else f"  closure {100 * self.closure:.2f} %"
        return (
            f"{self.label:<50} ours {self.ours_ms:9.3f} ms  theirs {self.theirs_ms:9.3f} ms  "
            f"ratio {self.wall}  by processor time {self.processor}  first {self.first_ours_seconds:.1f} s, "
            f"{self.first_theirs_seconds:.1f} s  results differ by {self.difference:.1e}{closure}"
        )


def measure(label: str, pair: Pair, effort: Effort) -> Row:
    first_ours, value = _first(pair.ours, pair)
    first_theirs, right = _first(pair.theirs, pair)
    counts = [_count(step, pair.wait, effort) for step in (pair.ours, pair.theirs)]
    closures: list[float] = []
    times = []  # by turn, place in the turn, clock
    for _ in range(effort.turns):
        times.append(
            [
                _block((pair.ours, pair.theirs)[side], counts[side], pair, closures)
                for side in (0, 1, 1, 0)
            ]
        )
    wall, processor = np.moveaxis(np.array(times), 2, 0)
    return Row(
        label=label,
        ours_ms=1e3 * float(np.median(wall[:, (0, 3)])),
        theirs_ms=1e3 * float(np.median(wall[:, (1, 2)])),
        wall=_ratio(wall),
        processor=_ratio(processor),
        turns=effort.turns,
        difference=float(np.abs(value - right).max() / np.abs(right).max()),
        first_ours_seconds=first_ours,
        first_theirs_seconds=first_theirs,
        closure=statistics.median(closures) if closures else None,
    )


def _ratio(times: Any) -> Ratio:
    logs = np.log((times[:, 0] + times[:, 3]) / (times[:, 1] + times[:, 2]))
    found = signed_rank(logs, ALPHA)
    low, high = (found.low, found.high) if found else (float(logs.min()), float(logs.max()))
    return Ratio(math.exp(float(np.median(logs))), math.exp(low), math.exp(high))


def _first(step: Step, pair: Pair) -> tuple[float, Any]:
    start = time.perf_counter()
    value = step()
    pair.wait()
    return time.perf_counter() - start, np.asarray(pair.array(value), np.float32)


def _count(step: Step, wait: Step, effort: Effort) -> int:
    """Steps of a block, from the warm-up."""
    done, start = 0, time.perf_counter()
    while time.perf_counter() - start < effort.warm_seconds or done < 3:
        step()
        wait()
        done += 1
    return max(1, round(effort.block_seconds * done / (time.perf_counter() - start)))


def _block(step: Step, count: int, pair: Pair, closures: list[float]) -> tuple[float, float]:
    """Seconds of one step by the wall's clock and by the processor's."""
    pair.wait()
    start, used = time.perf_counter(), time.process_time()
    device = pair.device_block(step, count) if pair.device_block else _run(step, count, pair.wait)
    seconds, processor = time.perf_counter() - start, time.process_time() - used
    if pair.device_block:
        closures.append(abs(seconds / device - 1))
    return seconds / count, processor / count


def _run(step: Step, count: int, wait: Step) -> float:
    for _ in range(count):
        step()
    wait()
    return 0.0
