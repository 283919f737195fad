"""Whether what was timed is the work and not only its launch: three ways in which unsynchronised work shows.

Σ device intervals disagree with the host's block time; the wait at a block's end takes long although the device is said
to be done when a step returns; or results are not there after a wait that returned at once."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from steptime.core.program import Program
from steptime.engine.clock import Clock

SHARE, LEAST_NS = 0.01, 50_000
"""Host and device must agree within the larger of the two."""
TRIES = 3


def violates(difference_ns: float, block_ns: float) -> bool:
    return difference_ns > max(SHARE * block_ns, LEAST_NS)


def agreement(name: str, pairs: Iterable[tuple[int, int]]) -> dict[str, float]:
    """Of (difference, block time): worst and median share, and the share of blocks beyond the bound.

    One block may be disturbed from outside; work that is not waited for shows in all of them."""
    known = [(difference_ns, block_ns) for difference_ns, block_ns in pairs if block_ns > 0]
    if not known:
        return {}
    shares = [difference_ns / block_ns for difference_ns, block_ns in known]
    return {
        name: max(shares),
        f"{name}_median": statistics.median(shares),
        f"{name}_violations": statistics.fmean(violates(*pair) for pair in known),
    }


def forced_share(
    program: Program, clock: Clock, steps: int, *, agree: Callable[[Any], Any] = lambda value: value
) -> tuple[float | None, int]:
    """How much of `steps` steps was still to be done when `wait` had returned, and how many steps it took to find out.
    None: the steps return no arrays.

    What is left after many steps is set against what is left after one, so that copying the results does not count.
    The least of several tries: work that is not waited for shows in each of them, a disturbance in one."""
    _left(
        program, clock, 1
    )  # asking for values loads code the first time, and waits for what was left before
    shares = []
    for _ in range(TRIES):
        one, many = _left(program, clock, 1), _left(program, clock, steps)
        if one is None or many is None:
            return None, 2 + steps
        excess_ns, elapsed_ns = max(0, many[0] - one[0]), max(1, many[1])
        shares.append(excess_ns / elapsed_ns)
        if agree(not violates(excess_ns, elapsed_ns)):
            break
    return min(shares), 1 + len(shares) * (1 + steps)


def _left(program: Program, clock: Clock, steps: int) -> tuple[int, int] | None:
    """Nanoseconds that asking for the last results took, and that the steps before it seemed to take."""
    start = clock()
    for _ in range(steps):
        outputs = program.step()
    program.wait()
    waited = clock()
    forced = force(outputs)
    return (clock() - waited, waited - start) if forced else None


def force(outputs: Any) -> bool:
    """Makes every array in `outputs` exist, by asking for its values. False: there was nothing that could be asked."""
    return any([_values(leaf) for leaf in _leaves(outputs)])


def _values(leaf: Any) -> bool:
    with suppress(Exception):  # a kind of number that NumPy lacks, or memory that it cannot reach
        np.asarray(leaf.detach() if hasattr(leaf, "detach") else leaf)
        return True
    return False


def _leaves(outputs: Any) -> Iterator[Any]:
    if isinstance(outputs, dict):
        outputs = tuple(outputs.values())
    if isinstance(outputs, list | tuple):
        for part in outputs:
            yield from _leaves(part)
    elif outputs is not None:
        yield outputs
