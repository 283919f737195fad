"""Whether the timed part includes the work and not only its launch.

Work that is not waited for shows in three ways: the device intervals do not add up to the
host's block time; the wait at a block's end takes long although a step is supposed to return
when the device is done; or results do not exist after a wait that returned at once."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from steptime.core.program import Program
from steptime.engine.clock import Clock

# Host and device must agree within the larger of the two.
MOST_SHARE, MOST_NS = 0.01, 50_000
TRIES = 3


def violates(difference_ns: float, block_ns: float) -> bool:
    return difference_ns > max(MOST_SHARE * block_ns, MOST_NS)


def agreement(name: str, pairs: Iterable[tuple[int, int]]) -> dict[str, float]:
    """From (difference, block time): worst and median share, and the share of violations.

    Something else may disturb one block; work that is not waited for shows in all of them."""
    blocks = [(difference_ns, block_ns) for difference_ns, block_ns in pairs if block_ns > 0]
    if not blocks:
        return {}
    shares = [difference_ns / block_ns for difference_ns, block_ns in blocks]
    violations = [violates(difference_ns, block_ns) for difference_ns, block_ns in blocks]
    return {
        name: max(shares),
        f"{name}_median": statistics.median(shares),
        f"{name}_violations": statistics.fmean(violations),
    }


class ForcedRun(NamedTuple):
    # What the steps and the wait seemed to take.
    steps_ns: int
    # What reading the last results took after that.
    rest_ns: int


def forced_share(
    program: Program,
    clock: Clock,
    steps: int,
    *,
    broadcast: Callable[[Any], Any] = lambda value: value,
) -> tuple[float | None, int]:
    """The share of `steps` steps that was unfinished when `wait` returned.

    Also returns how many steps ran to find out. The share is None if steps return no arrays.
    The rest after one step is subtracted from the rest after many, so that copying results
    does not count. The smallest share of several tries counts: work that is not waited for
    shows in each of them, a disturbance in one."""
    # The first read of values loads code, and it waits for what was still running before.
    _run_and_force(program, clock, 1)
    shares = []
    for _ in range(TRIES):
        single = _run_and_force(program, clock, 1)
        many = _run_and_force(program, clock, steps)
        if single is None or many is None:
            return None, 2 + steps
        excess_ns = max(0, many.rest_ns - single.rest_ns)
        elapsed_ns = max(1, many.steps_ns)
        shares.append(excess_ns / elapsed_ns)
        if broadcast(not violates(excess_ns, elapsed_ns)):
            break
    return min(shares), 1 + len(shares) * (1 + steps)


def _run_and_force(program: Program, clock: Clock, steps: int) -> ForcedRun | None:
    """None: the steps return no arrays."""
    start_ns = clock()
    for _ in range(steps):
        outputs = program.step()
    program.wait()
    waited_ns = clock()
    if not force(outputs):
        return None
    return ForcedRun(steps_ns=waited_ns - start_ns, rest_ns=clock() - waited_ns)


def force(outputs: Any) -> bool:
    """Read the values of every array in `outputs`. False: there was no readable array."""
    # A list and not a generator: `any` must not stop before the last array is read.
    return any([_read_values(leaf) for leaf in _leaves(outputs)])


def _read_values(leaf: Any) -> bool:
    # NumPy may lack the number type, or be unable to reach the memory.
    with suppress(Exception):
        np.asarray(leaf.detach() if hasattr(leaf, "detach") else leaf)
        return True
    return False


def _leaves(outputs: Any) -> Iterator[Any]:
    if isinstance(outputs, dict):
        outputs = tuple(outputs.values())
    if isinstance(outputs, list | tuple):
        for item in outputs:
            yield from _leaves(item)
    elif outputs is not None:
        yield outputs
