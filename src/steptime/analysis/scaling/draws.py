"""A number and its uncertainty through any arithmetic: the value, then draws of what it may be.

Processes of one case are independent. The logarithm of their typical time is its centre plus
Student's t times the standard error: for a single number that is Student's interval. A ratio, a
fit or a prediction is computed once for the values and once for each draw. Does no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from steptime.analysis.estimates import ACROSS, TOO_FEW_PROCESSES, Estimate
from steptime.analysis.intervals import typical

DRAWS = 2_000
# Fewer processes say next to nothing about their spread.
LEAST_PROCESSES = 3
TOO_FAR_APART = "no interval: the processes are too far apart"
# The value first, then its draws. Draws are NaN if nothing is known of the spread.
Uncertain = NDArray[np.float64]


def draw_typical(seconds: Sequence[float], rng: np.random.Generator) -> Uncertain:
    """The typical value of independent processes, each with one positive number."""
    logs = np.log(seconds)
    count = len(seconds)
    centre = typical(logs)
    if count < LEAST_PROCESSES:
        spread = np.full(DRAWS, np.nan)
    else:
        error = np.std(logs, ddof=1) / count**0.5
        spread = error * rng.permutation(_student_draws(count - 1))
    with np.errstate(over="ignore"):
        number: Uncertain = np.exp(centre + np.append(0.0, spread))
    return number


@lru_cache(maxsize=64)
def _student_draws(freedom: int) -> NDArray[np.float64]:
    """Evenly spaced in probability: steadier ends than random draws."""
    probabilities = (np.arange(DRAWS) + 0.5) / DRAWS
    draws: NDArray[np.float64] = stdtrit(freedom, probabilities)
    return draws


def has_spread(number: Uncertain) -> bool:
    """Whether anything is known of its spread."""
    return not bool(np.isnan(number).any())


def estimate(number: Uncertain) -> Estimate:
    if not has_spread(number):
        claim = TOO_FEW_PROCESSES if np.isnan(number[1:]).all() else TOO_FAR_APART
        return Estimate(float(number[0]), None, None, claim)
    low, high = interval_ends(number)
    return Estimate(float(number[0]), low, high, ACROSS)


def interval_ends(number: Uncertain, alpha: float = 0.05) -> tuple[float, float]:
    """Draws themselves, not values between two draws: one of these may be infinite."""
    ascending = np.sort(number[1:])
    cut = round(alpha / 2 * len(ascending))
    return float(ascending[cut]), float(ascending[-1 - cut])


def holds_zero(number: Uncertain, alpha: float = 0.05) -> bool:
    """Whether its interval contains zero. Without an interval, zero cannot be excluded."""
    if not has_spread(number):
        return True
    low, high = interval_ends(number, alpha)
    return low <= 0 <= high


def fit_factors(shapes: Sequence[Sequence[float]], values: Sequence[Uncertain]) -> list[Uncertain]:
    """Factors of these shapes (a row for each value) whose sum comes nearest to the values.

    Relative least squares, because the noise of times grows with them. It equals the mean of the
    exact solutions of all choices of as few rows as there are factors, weighted by the squared
    determinants (Jacobi, 1841). No matrix of draws is inverted, so one that lies far out makes
    none singular."""
    table = np.asarray(shapes, dtype=float)
    sizes = np.abs(table).max(axis=0)
    table = table / sizes
    draws = np.stack(values)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        return list(_mean_of_exact_solutions(table, draws) / sizes[:, None])


def _mean_of_exact_solutions(
    table: NDArray[np.float64], draws: NDArray[np.float64]
) -> NDArray[np.float64]:
    """A row for each factor, a column for each draw."""
    solutions = []
    log_weights = []
    for chosen in combinations(range(len(table)), table.shape[1]):
        rows = list(chosen)
        size, log_determinant = np.linalg.slogdet(table[rows])
        if size == 0:
            continue
        solutions.append(np.linalg.solve(table[rows], draws[rows]))
        log_weights.append(2 * (log_determinant - np.log(draws[rows]).sum(axis=0)))
    weights = np.exp(np.array(log_weights) - np.max(log_weights, axis=0))
    weights /= weights.sum(axis=0)
    factors: NDArray[np.float64] = np.einsum("cd,cfd->fd", weights, np.array(solutions))
    return factors
