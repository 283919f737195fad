"""The metric of a network's task on real data: accuracy or perplexity, each with its interval.

`before` is the result in fp32, `after` the result in the low precision."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

Array = Any
Interval = tuple[float, float]
Z_95 = 1.959963984540054
CONFIDENCE = 0.95
# The exponential of more overflows a float.
MOST_NATS = 700.0


def task_metric(
    targets: Sequence[Array], before: Sequence[Array], after: Sequence[Array]
) -> dict[str, Any]:
    """From batches of logits: accuracy of classes, perplexity of sequences."""
    if before[0].ndim == 2:
        return accuracy(_correct(targets, before), _correct(targets, after))
    return perplexity(_losses(targets, before), _losses(targets, after))


def task_value(targets: Sequence[Array], outputs: Sequence[Array]) -> dict[str, Any]:
    """The same metric of one precision alone."""
    compared = task_metric(targets, outputs, outputs)
    return {
        "metric": compared["metric"],
        "samples": compared["samples"],
        "value": compared["after"],
        "interval": compared["after_interval"],
        "confidence": CONFIDENCE,
    }


def accuracy(correct_before: Array, correct_after: Array) -> dict[str, Any]:
    """From one truth value per sample: whether its class had the largest logit."""
    count = len(correct_before)
    before = int(correct_before.sum())
    after = int(correct_after.sum())
    lost = int((correct_before & ~correct_after).sum())
    won = int((correct_after & ~correct_before).sum())
    change_interval = newcombe(count, before=before, after=after, lost=lost)
    return {
        "metric": "top-1 accuracy",
        "samples": count,
        "before": before / count,
        "before_interval": list(wilson(before, count)),
        "after": after / count,
        "after_interval": list(wilson(after, count)),
        "change": (won - lost) / count,
        "change_interval": list(change_interval),
        "lost": lost,
        "won": won,
        "mcnemar_p": mcnemar(lost, won),
        "confidence": CONFIDENCE,
    }


def perplexity(losses_before: Array, losses_after: Array) -> dict[str, Any]:
    """From the mean loss of each sequence, in nats per token.

    The change is a ratio from the differences within each sequence, because sequences differ
    much more than precisions do."""
    before, before_interval = _exponentiate(losses_before)
    after, after_interval = _exponentiate(losses_after)
    ratio, ratio_interval = _exponentiate(losses_after - losses_before)
    change_interval = None
    if ratio_interval is not None:
        change_interval = [end - 1 for end in ratio_interval]
    return {
        "metric": "perplexity",
        "samples": len(losses_before),
        "before": before,
        "before_interval": before_interval,
        "after": after,
        "after_interval": after_interval,
        "change": None if ratio is None else ratio - 1,
        "change_interval": change_interval,
        "confidence": CONFIDENCE,
    }


def log_softmax(logits: Array) -> Array:
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def wilson(hits: int, count: int) -> Interval:
    """Wilson (1927): the score interval of a share. It stays within 0 … 1."""
    share = hits / count
    square = Z_95**2
    scale = 1 + square / count
    centre = (share + square / (2 * count)) / scale
    variance = share * (1 - share) / count + square / (4 * count**2)
    width = Z_95 / scale * math.sqrt(variance)
    return max(0.0, centre - width), min(1.0, centre + width)


def newcombe(count: int, *, before: int, after: int, lost: int) -> Interval:
    """Interval of after − before, two shares of the same samples: Newcombe (1998), method 10.

    It combines the two Wilson intervals by the correlation of the answers."""
    share_before = before / count
    share_after = after / count
    low_before, high_before = wilson(before, count)
    low_after, high_after = wilson(after, count)
    correlation = _answer_correlation(count, before=before, after=after, lost=lost)

    def combine(width_after: float, width_before: float) -> float:
        product = 2 * correlation * width_after * width_before
        return math.sqrt(max(width_after**2 - product + width_before**2, 0.0))

    difference = share_after - share_before
    below = combine(share_after - low_after, high_before - share_before)
    above = combine(high_after - share_after, share_before - low_before)
    return difference - below, difference + above


def _answer_correlation(count: int, *, before: int, after: int, lost: int) -> float:
    """The phi coefficient of the answers before and after, with Newcombe's correction."""
    both = before - lost
    won = after - both
    neither = count - both - lost - won
    product = math.prod((before, count - before, after, count - after))
    if not product:
        return 0.0
    excess: float = both * neither - lost * won
    if excess > 0:
        excess = max(excess - count / 2, 0)
    return excess / math.sqrt(product)


def mcnemar(lost: int, won: int) -> float:
    """Exact, two-sided p-value of the split of the changed answers into lost and won."""
    changed = lost + won
    tail = sum(math.comb(changed, k) for k in range(min(lost, won) + 1))
    return min(1.0, float(2 * tail / 2**changed))


def student_95(freedom: int) -> float:
    """The 97.5 % quantile of Student's distribution, within 0.1 % from 5 degrees of freedom on.

    Cornish and Fisher's expansion (Abramowitz and Stegun 26.7.5): a worker cannot use SciPy,
    which only the analysis depends on."""
    z: float = Z_95
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / float(freedom) ** power for power, term in enumerate(terms, 1))


def _exponentiate(losses: Array) -> tuple[float | None, list[float] | None]:
    """e to the mean loss, with its interval across sequences.

    A single sequence has no interval. A loss that is not finite leaves no value either."""
    count = len(losses)
    mean = float(losses.mean())
    if not math.isfinite(mean):
        return None, None
    value = _exp(mean)
    if count < 2:
        return value, None
    width = student_95(count - 1) * float(losses.std(ddof=1)) / math.sqrt(count)
    return value, [_exp(mean - width), _exp(mean + width)]


def _exp(value: float) -> float:
    return math.exp(min(value, MOST_NATS))


def _correct(targets: Sequence[Array], outputs: Sequence[Array]) -> Array:
    """A row with a value that is not finite is never correct."""
    batches = []
    for logits, target in zip(outputs, targets, strict=True):
        is_finite = np.isfinite(logits).all(-1)
        batches.append(is_finite & (logits.argmax(-1) == target))
    return np.concatenate(batches)


def _losses(targets: Sequence[Array], outputs: Sequence[Array]) -> Array:
    """One sequence at a time, so that the float64 copies stay small."""
    losses = []
    for batch_outputs, batch_targets in zip(outputs, targets, strict=True):
        for logits, target in zip(batch_outputs, batch_targets, strict=True):
            losses.append(_loss(np.asarray(logits, np.float64), target))
    return np.array(losses)


def _loss(logits: Array, target: Array) -> float:
    if not np.isfinite(logits).all():
        return math.nan
    log_probabilities = np.take_along_axis(log_softmax(logits), target[:, None], axis=-1)
    return -float(log_probabilities.mean())
