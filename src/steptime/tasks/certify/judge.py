"""Evidence against the reference: each item's largest error, where it is, and whether rounding explains it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, takewhile
from statistics import median
from typing import Any

import numpy as np

from steptime.tasks.certify.evidence import Evidence

Deviations = dict[
    str, dict[str, list[float]]
]  # item -> name -> [largest, root mean square] of the rounded runs

SLACK = 4.0  # times the largest deviation that rounding caused in the reference
FLOOR = 1.0  # roundings more, of the largest value: what the order of a sum may cost where a draw was lucky
SIGMAS = 5.0
WEAK = 0.5  # a wider bound, relative, proves little
LEAP = 1 / 3  # of the first loss, in one step


@dataclass(frozen=True)
class Finding:
    """The name of an item that lies nearest to its bound, or farthest beyond it. Errors are relative."""

    error: float
    bound: float
    where: str
    share: float  # of the bound: above 1 is wrong


def judge(
    found: Evidence, exact: Evidence, deviations: Deviations, units: dict[str, float]
) -> list[dict[str, Any]]:
    """One entry for each item of the evidence. `units`: the size of one rounding, by item."""
    allowed = _allowed(exact, deviations)
    entries = []
    for item, values in found.items():
        scale = _scales(item, exact)
        findings = [
            _compare(
                name,
                values.get(name),
                exact[item][name],
                (allowed[item][name], scale[name], units[item]),
            )
            for name in _told_apart(item, exact, allowed, scale)
        ]
        findings += [
            Finding(np.inf, 0.0, f"{name}, which the network does not have", np.inf)
            for name in values.keys() - exact[item].keys()
        ]
        entries.append(entry(item, max(findings, key=lambda finding: finding.share)))
        entries[-1]["weak"] |= 2 * len(findings) < len(
            exact[item]
        )  # most steps could not be judged
    return entries


def _told_apart(
    item: str, exact: Evidence, allowed: Deviations, scale: dict[str, list[float]]
) -> list[str]:
    """What can be judged: numbers, and of a trajectory the steps up to where rounding itself decides how it goes on, or
    where the loss leaps, because there it soon will."""
    names = [name for name in exact[item] if np.all(np.isfinite(exact[item][name]))]
    if item != "trajectory":
        return names
    pairs = pairwise([names[0], *names])
    calm = takewhile(
        lambda pair: abs(exact[item][pair[1]] - exact[item][pair[0]]) <= LEAP * scale[pair[1]][0],
        pairs,
    )
    return [
        name for _, name in calm if SLACK * allowed[item][name][0] <= WEAK * scale[name][0]
    ] or names[:1]


def entry(item: str, worst: Finding) -> dict[str, Any]:
    return {
        "item": item,
        "passed": bool(worst.share <= 1.0),
        **{name: _told(getattr(worst, name)) for name in ("error", "bound", "share")},
        "weak": bool(worst.bound > WEAK),
        "where": worst.where,
    }


def _told(value: float) -> float | None:
    """JSON has no infinity."""
    return float(value) if np.isfinite(value) else None


def judge_dropout(found: dict[str, Any], exact: dict[str, Any], unit: float) -> dict[str, Any]:
    """The mean of losses that are drawn anew in every step, within five of its standard errors."""
    findings = []
    for rate, right in exact.items():
        drawn, scale = found[rate], abs(right.mean())
        spread = right.std(ddof=1) * np.sqrt(1 / len(right) + 1 / len(drawn))
        bound = SIGMAS * spread / scale + FLOOR * unit
        error = float(abs(drawn.mean() - right.mean()) / scale)
        if len(set(drawn.tolist())) == 1:
            findings.append(Finding(np.inf, float(bound), f"{rate}: drawn once and kept", np.inf))
        findings.append(Finding(error, float(bound), rate, error / bound))
    return entry("dropout", max(findings, key=lambda finding: finding.share))


def deviation(found: Any, exact: Any) -> list[float]:
    difference = np.abs(np.asarray(found, np.float64) - exact)
    if not np.isfinite(difference).all():
        return [np.inf, np.inf]
    return [float(difference.max()), _rms(difference)]


def _compare(
    name: str, found: Any, exact: Any, limits: tuple[list[float], list[float], float]
) -> Finding:
    allowed, scale, unit = limits
    if found is None or np.shape(found) != np.shape(exact):
        return Finding(
            np.inf,
            0.0,
            f"{name}: {'absent' if found is None else f'shape {np.shape(found)}'}",
            np.inf,
        )
    errors = deviation(found, exact)
    bounds = [SLACK * a + FLOOR * unit * s for a, s in zip(allowed, scale, strict=True)]
    shares = [_share(error, bound) for error, bound in zip(errors, bounds, strict=True)]
    # 0: the largest error; 1: the root mean square, also where the other's bound is too wide to say anything.
    vacuous = max(shares) <= 1 and bounds[0] > WEAK * scale[0]
    worse = int(vacuous or shares[1] > shares[0])
    place = np.unravel_index(
        np.argmax(np.abs(np.asarray(found, np.float64) - exact)), np.shape(exact)
    )
    index = f"[{', '.join(map(str, place))}]" if place else ""
    return Finding(
        errors[worse] / scale[worse], bounds[worse] / scale[worse], f"{name}{index}", shares[worse]
    )


def _share(error: float, bound: float) -> float:
    if np.isinf(error):
        return np.inf
    return error / bound if bound else (0.0 if error == 0 else np.inf)


def _scales(item: str, exact: Evidence) -> dict[str, list[float]]:
    """What errors are relative to: the weight's own size, and for losses the first of them."""
    if item in ("loss", "trajectory"):
        first = abs(float(exact["loss"]["loss"])) or 1.0  # of a single class it is 0
        return {name: [first, first] for name in exact[item]}
    sizes = {name: [float(np.abs(value).max()), _rms(value)] for name, value in exact[item].items()}
    largest = [max(size[measure] for size in sizes.values()) or 1.0 for measure in (0, 1)]
    return {
        name: [own or most for own, most in zip(size, largest, strict=True)]
        for name, size in sizes.items()
    }


def _allowed(exact: Evidence, deviations: Deviations) -> Deviations:
    """Deviations, made safe against lucky draws. A loss may be off by what the outputs are, and by what it was off a
    moment before."""
    found = {
        item: _pooled(values, exact[item], _scales(item, exact))
        for item, values in deviations.items()
    }
    if "loss" in found:
        off = max(deviations["outputs"]["outputs"][1], deviations["loss"]["loss"][0])
        for name, own in deviations["trajectory"].items():
            off = max(off, own[0])
            found["trajectory"][name] = [off, off]
        early = max(off_at[0] for off_at in list(found["trajectory"].values())[:3])
        found["loss"]["loss"] = [early, early]
    return found


def _pooled(
    values: dict[str, list[float]], exact: dict[str, Any], scales: dict[str, list[float]]
) -> dict[str, list[float]]:
    """Luck moves numbers far: a ReLU turns over and with it a row of gradients, or Adam divides by a gradient that is
    nearly 0. So no weight need be better than any other of its item, those left out that rounding decides altogether,
    unless these are half of them. And in the mean of a small weight one number may be off by the most."""
    relative = [[own[m] / scales[name][m] for name, own in values.items()] for m in (0, 1)]
    usual = [max([median(off), *(one for one in off if one <= WEAK)]) for off in relative]
    found = {}
    for name, own in values.items():
        largest, mean = (max(own[m], usual[m] * scales[name][m]) for m in (0, 1))
        found[name] = [largest, max(mean, largest / np.sqrt(np.size(exact[name])))]
    return found


def _rms(values: Any) -> float:
    return float(np.sqrt(np.mean(np.square(values, dtype=np.float64))))
