"""A number and how sure it is, carried through any arithmetic: the value, then draws of what it may be as well.

Processes of one case are independent. The logarithm of their typical time is their centre plus Student's law times the
standard error: for a single number that is Student's interval, and what is computed from several of them (a ratio, a
fit, a prediction) is computed once for the values and once for each draw. Does no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from steptime.analysis.estimates import ACROSS, Estimate
from steptime.analysis.intervals import typical

DRAWS = 2_000
LEAST_PROCESSES = 3  # fewer say next to nothing of their spread
TOO_FEW = "no interval: too few processes"
Uncertain = NDArray[np.float64]
"""The value first, then its draws; these are not numbers where nothing is known of the spread."""


def measured(seconds: Sequence[float], rng: np.random.Generator) -> Uncertain:
    """Of independent processes, each with one positive number."""
    logs, count = np.log(seconds), len(seconds)
    centre = typical(logs)
    if count < LEAST_PROCESSES:
        spread = np.full(DRAWS, np.nan)
    else:
        spread = np.std(logs, ddof=1) / count**0.5 * rng.permutation(_student(count - 1))
    found: Uncertain = np.exp(centre + np.append(0.0, spread))
    return found


@lru_cache(maxsize=64)
def _student(freedom: int) -> NDArray[np.float64]:
    """Evenly spaced in probability: steadier ends than draws by chance, and no draw so far out that a fit breaks."""
    found: NDArray[np.float64] = stdtrit(freedom, (np.arange(DRAWS) + 0.5) / DRAWS)
    return found


def is_sure(number: Uncertain) -> bool:
    """Whether anything is known of its spread."""
    return not bool(np.isnan(number).any())


def estimate(number: Uncertain) -> Estimate:
    low, high = ends(number) if is_sure(number) else (None, None)
    return Estimate(float(number[0]), low, high, TOO_FEW if low is None else ACROSS)


def ends(number: Uncertain, alpha: float = 0.05) -> tuple[float, float]:
    """Draws themselves, not values between two of them: one of these may be infinite."""
    ascending = np.sort(number[1:])
    cut = round(alpha / 2 * len(ascending))
    return float(ascending[cut]), float(ascending[-1 - cut])


def holds(number: Uncertain, alpha: float = 0.05) -> bool:
    """Whether its interval holds zero; without an interval that cannot be excluded."""
    if not is_sure(number):
        return True
    low, high = ends(number, alpha)
    return low <= 0 <= high


def fitted(shapes: Sequence[Sequence[float]], values: Sequence[Uncertain]) -> list[Uncertain]:
    """Factors of these shapes (a row for each value) whose sum comes nearest to the values, by relative least squares:
    the wobble of times grows with them. Linear, so that each draw is solved at once."""
    sizes = np.abs(shapes).max(axis=0)
    design = np.asarray(shapes)[None] / sizes / np.stack(values, axis=1)[:, :, None]
    turned = design.transpose(0, 2, 1)
    found = np.linalg.solve(turned @ design, turned.sum(axis=2)[:, :, None])[:, :, 0] / sizes
    return list(found.T)
