"""What a network is for, before and after: accuracy or perplexity on real data, each with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

Array = Any
Interval = tuple[float, float]
Z_95 = 1.959963984540054
CONFIDENCE = 0.95
MOST_NATS = 700.0  # beyond it a float has no exponential


def task_metric(
    targets: Sequence[Array], before: Sequence[Array], after: Sequence[Array]
) -> dict[str, Any]:
    """Of batches of logits: classes have accuracy, sequences have perplexity."""
    if before[0].ndim == 2:
        return accuracy(_right(targets, before), _right(targets, after))
    return perplexity(_losses(targets, before), _losses(targets, after))


def accuracy(right_before: Array, right_after: Array) -> dict[str, Any]:
    """One truth value per sample: whether its class came first, in fp32 and in the low precision."""
    count, before, after = len(right_before), int(right_before.sum()), int(right_after.sum())
    lost, won = int((right_before & ~right_after).sum()), int((right_after & ~right_before).sum())
    return {
        "metric": "top-1 accuracy",
        "samples": count,
        "before": before / count,
        "before_interval": list(wilson(before, count)),
        "after": after / count,
        "after_interval": list(wilson(after, count)),
        "change": (won - lost) / count,
        "change_interval": list(paired(count, before=before, after=after, lost=lost)),
        "lost": lost,
        "won": won,
        "mcnemar_p": mcnemar(lost, won),
        "confidence": CONFIDENCE,
    }


def perplexity(losses_before: Array, losses_after: Array) -> dict[str, Any]:
    """The mean loss of each sequence, in nats per token. The change is a ratio, from differences of the same sequence:
    sequences differ much more than precisions do."""
    found = {"before": losses_before, "after": losses_after, "change": losses_after - losses_before}
    grown = {name: _grown(losses) for name, losses in found.items()}
    change, interval = grown["change"]
    return {
        "metric": "perplexity",
        "samples": len(losses_before),
        "before": grown["before"][0],
        "before_interval": grown["before"][1],
        "after": grown["after"][0],
        "after_interval": grown["after"][1],
        "change": None if change is None else change - 1,
        "change_interval": interval and [end - 1 for end in interval],
        "confidence": CONFIDENCE,
    }


def log_softmax(logits: Array) -> Array:
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def wilson(hits: int, count: int) -> Interval:
    """Wilson (1927): the score interval of a share; never leaves 0…1, and has a width at both ends."""
    share, square = hits / count, Z_95**2
    centre = (share + square / (2 * count)) / (1 + square / count)
    width = (
        Z_95
        / (1 + square / count)
        * math.sqrt(share * (1 - share) / count + square / (4 * count**2))
    )
    return max(0.0, centre - width), min(1.0, centre + width)


def paired(count: int, *, before: int, after: int, lost: int) -> Interval:
    """The difference of two shares of the same samples, after − before: Newcombe (1998), method 10, which joins the two
    Wilson intervals by the correlation of the answers."""
    both = before - lost
    won = after - both
    neither = count - both - lost - won
    shares = after / count, before / count
    (low_a, high_a), (low_b, high_b) = wilson(after, count), wilson(before, count)
    product = math.prod((before, count - before, after, count - after))
    excess = both * neither - lost * won
    correlation = (
        (max(excess - count / 2, 0) if excess > 0 else excess) / math.sqrt(product)
        if product
        else 0.0
    )

    def reach(one: float, two: float) -> float:
        return math.sqrt(max(one**2 - 2 * correlation * one * two + two**2, 0.0))

    difference = shares[0] - shares[1]
    below = reach(shares[0] - low_a, high_b - shares[1])
    above = reach(high_a - shares[0], shares[1] - low_b)
    return difference - below, difference + above


def mcnemar(lost: int, won: int) -> float:
    """Exact, two-sided: how probable so one-sided a split of the changed answers is by chance."""
    changed = lost + won
    tail = sum(math.comb(changed, k) for k in range(min(lost, won) + 1))
    return min(1.0, float(2 * tail / 2**changed))


def student_95(freedom: int) -> float:
    """The 97.5 % quantile of Student's distribution: Cornish and Fisher's expansion (Abramowitz and Stegun 26.7.5),
    within 0.1 % from 5 degrees of freedom on. SciPy is not on the worker's side."""
    z: float = Z_95
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / float(freedom) ** power for power, term in enumerate(terms, 1))


def _grown(losses: Array) -> tuple[float | None, list[float] | None]:
    """e to the mean loss, with its interval across sequences. One sequence has none to tell; a broken one leaves
    nothing to tell."""
    count, mean = len(losses), float(losses.mean())
    if not math.isfinite(mean):
        return None, None
    value = _exp(mean)
    if count < 2:
        return value, None
    width = student_95(count - 1) * float(losses.std(ddof=1)) / math.sqrt(count)
    return value, [_exp(mean - width), _exp(mean + width)]


def _exp(value: float) -> float:
    return math.exp(min(value, MOST_NATS))


def _right(targets: Sequence[Array], outputs: Sequence[Array]) -> Array:
    """A row with a number that is not finite has no first class."""
    parts = [
        np.isfinite(o).all(-1) & (o.argmax(-1) == t) for o, t in zip(outputs, targets, strict=True)
    ]
    return np.concatenate(parts)


def _losses(targets: Sequence[Array], outputs: Sequence[Array]) -> Array:
    """One sequence at a time, so that float64 copies stay small."""
    pairs = (pair for o, t in zip(outputs, targets, strict=True) for pair in zip(o, t, strict=True))
    return np.array([_loss(np.asarray(logits, np.float64), target) for logits, target in pairs])


def _loss(logits: Array, target: Array) -> float:
    if not np.isfinite(logits).all():
        return math.nan
    return -float(np.take_along_axis(log_softmax(logits), target[:, None], axis=-1).mean())
