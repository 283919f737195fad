"""Judge evidence against the reference: does rounding explain each item's largest error?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from steptime.tasks.certify.evidence import Evidence

# Items that are losses; of these, the ones of a few steps.
FEW_STEPS = ("forward", "steps from host")
LOSSES = ("loss", *FEW_STEPS, "trajectory")

# A bound is this many times the largest deviation that rounding caused in the reference.
SLACK = 4.0
# And as many roundings of the largest value: the order of a sum may cost them after lucky draws.
FLOOR = 1.0
SIGMAS = 5.0
# A bound wider than this, relative, proves little.
WEAK = 0.5
# Of the error that a low precision must cause: less was not computed in that precision.
TOO_EXACT = 0.02
# And may be off by this many times the value: rounding decides it.
CHAOS = 2.0
LEAP = 1 / 3  # of the first loss, in one step


class Deviation(NamedTuple):
    """Largest and root mean square of the errors of an array, or of its values."""

    largest: float
    rms: float


# item -> name -> deviation of the rounded runs
Deviations = dict[str, dict[str, Deviation]]


class Limits(NamedTuple):
    allowed: Deviation
    scale: Deviation  # what errors are relative to
    unit: float  # the size of one rounding


@dataclass(frozen=True)
class Comparison:
    """One array of an item with its reference. Error and bound are relative."""

    error: float
    bound: float
    where: str
    # Error divided by bound: above 1 the array is wrong.
    share: float


def judge(
    evidence: Evidence, exact: Evidence, deviations: Deviations, units: dict[str, float]
) -> list[dict[str, Any]]:
    """One entry for each item of the evidence. `units`: the size of one rounding, by item."""
    allowances = _allowances(exact, deviations)
    entries = []
    for item, values in evidence.items():
        scales = _scales(item, exact)
        comparisons = []
        for name in _judgeable(item, exact, allowances, scales):
            limits = Limits(allowances[item][name], scales[name], units[item])
            comparisons.append(_compare(name, values.get(name), exact[item][name], limits))
        for name in values.keys() - exact[item].keys():
            where = f"{name}, which the network does not have"
            comparisons.append(Comparison(np.inf, 0.0, where, np.inf))
        entry = make_entry(item, comparisons)
        # Most steps could not be judged.
        if 2 * len(comparisons) < len(exact[item]):
            entry["weak"] = True
        entries.append(entry)
    return entries


def _judgeable(
    item: str, exact: Evidence, allowances: Deviations, scales: dict[str, Deviation]
) -> list[str]:
    """Names with finite values. A trajectory ends before rounding decides how it goes on, or
    before the loss leaps, because then it soon will."""
    values = exact[item]
    names = [name for name in values if np.all(np.isfinite(values[name]))]
    if item != "trajectory":
        return names
    judgeable = []
    for index, name in enumerate(names):
        scale = scales[name].largest
        # The step before the last had the same batch.
        previous = names[max(0, index - 2)] if index != 1 else name
        if values[name] - values[previous] > LEAP * scale:
            break
        if SLACK * allowances[item][name].largest <= WEAK * scale:
            judgeable.append(name)
    return judgeable or names[:1]


def judge_precision(
    evidence: Evidence, exact: Evidence, deviations: Deviations, unit: float
) -> list[dict[str, Any]]:
    """An error far below the precision's rounding shows another precision than was asked for.

    One entry, or none if no array shows the rounding at all."""
    comparisons = []
    for item in ("outputs", "gradients", "optimizer step"):
        shares = []
        for name, values in evidence.get(item, {}).items():
            rounding = deviations[item][name].rms
            error = deviation(values, exact[item][name]).rms
            scale = root_mean_square(exact[item][name])
            # Adam moves a weight by its rate, whatever the gradient: no rounding shows there.
            if scale and rounding > unit * scale / 4:
                shares.append((error / rounding, error / scale, rounding / scale))
        if shares:
            # The array in which the precision shows most: kinks make the draws of others large.
            ratio, error, rounding = max(shares)
            share = TOO_EXACT / ratio if ratio else np.inf
            where = f"{item}: more exact than asked for"
            comparisons.append(Comparison(error, TOO_EXACT * rounding, where, share))
    return [make_entry("precision", comparisons)] if comparisons else []


def make_entry(item: str, comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """The comparison nearest to its bound, or farthest beyond it."""
    worst = max(comparisons, key=lambda comparison: comparison.share)
    return {
        "item": item,
        "passed": bool(worst.share <= 1.0),
        "error": _finite_or_none(worst.error),
        "bound": _finite_or_none(worst.bound),
        "share": _finite_or_none(worst.share),
        "weak": bool(worst.bound > WEAK),
        "where": worst.where,
    }


def _finite_or_none(value: float) -> float | None:
    """JSON has no infinity."""
    return float(value) if np.isfinite(value) else None


def judge_dropout(losses: dict[str, Any], exact: dict[str, Any], unit: float) -> dict[str, Any]:
    """Every step draws anew, so mean losses must agree within five of their standard errors."""
    comparisons = []
    for rate, exact_losses in exact.items():
        rate_losses = losses[rate]
        scale = abs(exact_losses.mean())
        standard_error = exact_losses.std(ddof=1) * np.sqrt(
            1 / len(exact_losses) + 1 / len(rate_losses)
        )
        bound = float(SIGMAS * standard_error / scale + FLOOR * unit)
        error = float(abs(rate_losses.mean() - exact_losses.mean()) / scale)
        if len(set(rate_losses.tolist())) == 1:
            where = f"{rate}: the same in every step"
            comparisons.append(Comparison(np.inf, bound, where, np.inf))
        comparisons.append(Comparison(error, bound, rate, error / bound))
    return make_entry("dropout", comparisons)


def deviation(values: Any, exact: Any) -> Deviation:
    difference = np.abs(np.asarray(values, np.float64) - exact)
    if not np.isfinite(difference).all():
        return Deviation(np.inf, np.inf)
    return Deviation(float(difference.max()), root_mean_square(difference))


def _compare(name: str, values: Any, exact: Any, limits: Limits) -> Comparison:
    if values is None:
        return Comparison(np.inf, 0.0, f"{name}: absent", np.inf)
    if np.shape(values) != np.shape(exact):
        return Comparison(np.inf, 0.0, f"{name}: shape {np.shape(values)}", np.inf)
    allowed, scale, unit = limits
    errors = deviation(values, exact)
    largest_bound = SLACK * allowed.largest + FLOOR * unit * scale.largest
    rms_bound = SLACK * allowed.rms + FLOOR * unit * scale.rms
    largest_share = _share(errors.largest, largest_bound)
    rms_share = _share(errors.rms, rms_bound)
    where = f"{name}{_index_of_largest_error(values, exact)}"
    # What rounding decides by half it may decide altogether, as Adam does with a gradient near 0.
    if rms_bound > WEAK * scale.rms:
        rms_share = min(rms_share, _share(errors.rms, CHAOS * scale.rms))
        largest_share = min(largest_share, _share(errors.largest, CHAOS * scale.largest))
    # The root mean square also counts if the bound of the largest error is too wide to mean much.
    is_vacuous = max(largest_share, rms_share) <= 1 and largest_bound > WEAK * scale.largest
    if is_vacuous or rms_share > largest_share:
        return Comparison(errors.rms / scale.rms, rms_bound / scale.rms, where, rms_share)
    error = errors.largest / scale.largest
    return Comparison(error, largest_bound / scale.largest, where, largest_share)


def _index_of_largest_error(values: Any, exact: Any) -> str:
    """As `[1, 0]`; empty for a single number."""
    errors = np.abs(np.asarray(values, np.float64) - exact)
    index = np.unravel_index(np.argmax(errors), np.shape(exact))
    return f"[{', '.join(map(str, index))}]" if index else ""


def _share(error: float, bound: float) -> float:
    if np.isinf(error):
        return np.inf
    if bound:
        return error / bound
    return 0.0 if error == 0 else np.inf


def _scales(item: str, exact: Evidence) -> dict[str, Deviation]:
    """What errors are relative to: the weight's own size, and for losses the first of them."""
    if item in LOSSES:
        # The loss of a single class is 0.
        first_loss = abs(float(exact["loss"]["loss"])) or 1.0
        return dict.fromkeys(exact[item], Deviation(first_loss, first_loss))
    sizes = {}
    for name, value in exact[item].items():
        sizes[name] = Deviation(float(np.abs(value).max()), root_mean_square(value))
    # A weight that is exactly 0 is measured by the largest of the others.
    most_largest = max(size.largest for size in sizes.values()) or 1.0
    most_rms = max(size.rms for size in sizes.values()) or 1.0
    scales = {}
    for name, size in sizes.items():
        scales[name] = Deviation(size.largest or most_largest, size.rms or most_rms)
    return scales


def _allowances(exact: Evidence, deviations: Deviations) -> Deviations:
    """The deviations, made safe against lucky draws.

    A loss may be off by as much as the outputs, and as much as the losses before it."""
    allowances = {}
    for item, values in deviations.items():
        allowances[item] = _pool(values, exact[item], _scales(item, exact))
    if "loss" not in allowances:
        return allowances
    off = max(value.rms for value in deviations["outputs"].values())
    off = max(off, deviations["loss"]["loss"].largest)
    for item in (*FEW_STEPS, "trajectory"):
        for name, step_deviation in deviations.get(item, {}).items():
            off = max(off, step_deviation.largest)
            allowances[item][name] = Deviation(off, off)
    trajectory = list(allowances.get("trajectory", {}).values())
    early = max([off_loss.largest for off_loss in trajectory[:3]], default=off)
    allowances["loss"]["loss"] = Deviation(early, early)
    return allowances


def _pool(
    deviations: dict[str, Deviation], exact: dict[str, Any], scales: dict[str, Deviation]
) -> dict[str, Deviation]:
    """No weight need be better than the usual weight of its item.

    Luck moves numbers far: a ReLU switches and with it a row of gradients, or Adam divides by a
    gradient near 0. And in the mean of a small weight one number may be off by the most."""
    relative_largest = []
    relative_rms = []
    for name, (largest, rms) in deviations.items():
        relative_largest.append(largest / scales[name].largest)
        relative_rms.append(rms / scales[name].rms)
    usual_largest = _usual(relative_largest)
    usual_rms = _usual(relative_rms)
    pooled = {}
    for name, (largest, rms) in deviations.items():
        largest = max(largest, usual_largest * scales[name].largest)
        rms = max(rms, usual_rms * scales[name].rms)
        single = largest / np.sqrt(np.size(exact[name]))
        pooled[name] = Deviation(largest, max(rms, single))
    return pooled


def _usual(relative: list[float]) -> float:
    """The largest, without those that rounding decides altogether; at least the median."""
    return max([median(relative), *(value for value in relative if value <= WEAK)])


def root_mean_square(values: Any) -> float:
    return float(np.sqrt(np.mean(np.square(values, dtype=np.float64))))
