"""Two resident programs against each other, by two clocks.

Blocks alternate ours, theirs, theirs, ours: a quadruple cancels a steady drift of the machine."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from steptime.analysis.intervals import signed_rank

Step = Callable[[], Any]
ALPHA = 0.05


def wait_for_nothing() -> None:
    """For a step that is done when it returns."""


@dataclass(frozen=True)
class Pair:
    """Two steps of the same work from equal weights."""

    ours: Step
    theirs: Step
    wait: Step = wait_for_nothing
    # Makes an array of what a step returns.
    to_array: Callable[[Any], Any] = np.asarray
    # device_block(step, count): the seconds of a block by the clock of the device.
    device_block: Callable[[Step, int], float] | None = None


@dataclass(frozen=True)
class Effort:
    block_seconds: float
    warm_seconds: float
    quadruples: int


@dataclass(frozen=True)
class Ratio:
    """Below 1 ours is faster."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


class Block(NamedTuple):
    """Seconds of one step."""

    wall: float
    processor: float


@dataclass(frozen=True)
class Row:
    label: str
    ours_ms: float
    theirs_ms: float
    wall: Ratio
    # Of processor time: other users of the machine disturb it less.
    processor: Ratio
    quadruples: int
    # Of the first results, relative: it shows that both do the same work.
    difference: float
    first_ours_seconds: float
    first_theirs_seconds: float
    # Median |host / device − 1| of all blocks.
    closure: float | None

    def __str__(self) -> str:
        text = (
            f"{self.label:<50} ours {self.ours_ms:9.3f} ms  theirs {self.theirs_ms:9.3f} ms  "
            f"ratio {self.wall}  by processor time {self.processor}  "
            f"first {self.first_ours_seconds:.1f} s, {self.first_theirs_seconds:.1f} s  "
            f"results differ by {self.difference:.1e}"
        )
        if self.closure is not None:
            text += f"  closure {100 * self.closure:.2f} %"
        return text


def measure(label: str, pair: Pair, effort: Effort) -> Row:
    first_ours, our_result = _first_step(pair.ours, pair)
    first_theirs, their_result = _first_step(pair.theirs, pair)
    our_count = _steps_per_block(pair.ours, pair.wait, effort)
    their_count = _steps_per_block(pair.theirs, pair.wait, effort)
    closures: list[float] = []
    quadruples = []
    for _ in range(effort.quadruples):
        quadruple = [
            _block(pair.ours, our_count, pair, closures),
            _block(pair.theirs, their_count, pair, closures),
            _block(pair.theirs, their_count, pair, closures),
            _block(pair.ours, our_count, pair, closures),
        ]
        quadruples.append(quadruple)
    wall, processor = np.moveaxis(np.array(quadruples), 2, 0)
    difference = np.abs(our_result - their_result).max() / np.abs(their_result).max()
    return Row(
        label=label,
        ours_ms=1e3 * float(np.median(wall[:, (0, 3)])),
        theirs_ms=1e3 * float(np.median(wall[:, (1, 2)])),
        wall=_ratio(wall),
        processor=_ratio(processor),
        quadruples=effort.quadruples,
        difference=float(difference),
        first_ours_seconds=first_ours,
        first_theirs_seconds=first_theirs,
        closure=statistics.median(closures) if closures else None,
    )


def _ratio(times: Any) -> Ratio:
    """`times`: a row for each quadruple."""
    ours = times[:, 0] + times[:, 3]
    theirs = times[:, 1] + times[:, 2]
    # Logarithms, so that a ratio and its inverse weigh the same.
    logs = np.log(ours / theirs)
    interval = signed_rank(logs, ALPHA)
    # Too few quadruples for an interval: the extremes.
    low = interval.low if interval else float(logs.min())
    high = interval.high if interval else float(logs.max())
    return Ratio(math.exp(float(np.median(logs))), math.exp(low), math.exp(high))


def _first_step(step: Step, pair: Pair) -> tuple[float, Any]:
    """Its seconds, with compilation, and its result."""
    start = time.perf_counter()
    value = step()
    pair.wait()
    seconds = time.perf_counter() - start
    return seconds, np.asarray(pair.to_array(value), np.float32)


def _steps_per_block(step: Step, wait: Step, effort: Effort) -> int:
    """Estimated from the warm-up."""
    done = 0
    start = time.perf_counter()
    # Three steps at least: the first ones may compile.
    while time.perf_counter() - start < effort.warm_seconds or done < 3:
        step()
        wait()
        done += 1
    steps_per_second = done / (time.perf_counter() - start)
    return max(1, round(effort.block_seconds * steps_per_second))


def _block(step: Step, count: int, pair: Pair, closures: list[float]) -> Block:
    # Nothing may be pending when the clocks start.
    pair.wait()
    start = time.perf_counter()
    processor_start = time.process_time()
    device_seconds = None
    if pair.device_block:
        device_seconds = pair.device_block(step, count)
    else:
        for _ in range(count):
            step()
        pair.wait()
    wall = time.perf_counter() - start
    processor = time.process_time() - processor_start
    if device_seconds is not None:
        closures.append(abs(wall / device_seconds - 1))
    return Block(wall / count, processor / count)
