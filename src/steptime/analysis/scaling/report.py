"""A series and its laws in plain numbers, each with its interval, for tables and programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from steptime.analysis.scaling.draws import Uncertain, estimate, has_spread, holds_zero
from steptime.analysis.scaling.laws import Law, NoLaw, Prediction, laws, predict
from steptime.analysis.scaling.series import Point, Series

Json = dict[str, Any]
# Without a wish, predictions are for so many times the devices that were measured.
DEFAULT_TIMES = (4, 8, 32)
PAYS_MORE = "a step pays more than the exchange alone takes"


class Target(NamedTuple):
    """What a prediction is asked for."""

    devices: int
    # Bytes per second; None: as measured.
    bandwidth: float | None = None


def report(series: Series, targets: Sequence[Target] = ()) -> Json:
    """Without targets: 4, 8 and 32 times as many devices as were measured and had room."""
    if not targets:
        most = max((point.devices for point in series.clean), default=1)
        targets = [Target(most * times) for times in DEFAULT_TIMES]
    # Draws of processes that are far apart divide by next to nothing: infinite is what they say.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        return {
            "kind": series.kind,
            "exchange": series.exchange,
            "case": series.case.to_dict(),
            "points": [_point(series, point) for point in series.points],
            "laws": [_law(series, law, targets) for law in laws(series)],
        }


def _point(series: Series, point: Point) -> Json:
    bare = point.independent
    exposed = point.exposed
    bare_efficiency = None if bare is None else series.efficiency(point.devices, bare)
    return {
        "devices": point.devices,
        "batch_size": point.batch_size,
        "oversubscribed": point.oversubscribed,
        "step_seconds": _interval(point.step),
        "independent_step_seconds": _interval(bare),
        "speed_up": _interval(series.speed_up(point.devices, point.step)),
        "efficiency": _interval(series.efficiency(point.devices, point.step)),
        "independent_efficiency": _interval(bare_efficiency),
        "exposed_seconds": _interval(exposed),
        "exposed_share": _interval(None if exposed is None else exposed / point.step),
        "exchange_seconds": _interval(point.exchange),
        "overlapped_seconds": _interval(point.overlapped),
        "pause_cost": _pause_cost(point),
        "exchanged_bytes": point.exchanged_bytes,
        "bus_bytes_per_second": _interval(point.bandwidth),
        "latency_seconds": _interval(point.latency),
        "bandwidth_bytes_per_second": _interval(point.link),
        "notes": _notes(series, point),
    }


def _pause_cost(point: Point) -> list[Json]:
    """Without the first pause, which has no length."""
    rows = []
    costs = zip(point.pause_cost.pauses, point.pause_cost.longer, strict=True)
    for pause, longer in list(costs)[1:]:
        rows.append({"pause_seconds": pause, "longer_share": _interval(longer)})
    return rows


def _notes(series: Series, point: Point) -> list[str]:
    if point is series.first:
        return []
    notes = []
    if point.oversubscribed:
        notes.append(f"oversubscribed: {point.oversubscribed}")
    efficiency = series.efficiency(point.devices, point.step)
    if efficiency[0] > 1:
        beyond = "" if holds_zero(efficiency - 1) else ", beyond its interval"
        notes.append(f"efficiency is above 100 %{beyond}")
    vague = [name for name in ("exposed", "overlapped") if _is_vague(getattr(point, name))]
    if vague:
        notes.append(f"{' and '.join(vague)} may be nothing: the interval contains zero")
    overlapped = point.overlapped
    if overlapped is not None and overlapped[0] < 0 and not holds_zero(overlapped):
        notes.append(PAYS_MORE)
    return notes


def _is_vague(number: Uncertain | None) -> bool:
    return number is not None and has_spread(number) and holds_zero(number)


def _law(series: Series, law: Law | NoLaw, targets: Sequence[Target]) -> Json:
    if isinstance(law, NoLaw):
        return {"name": law.name, "no_fit": law.reason}
    predictions = []
    for target in targets:
        prediction = predict(series, law, target.devices, target.bandwidth)
        if prediction is not None:
            predictions.append(_prediction(prediction))
    return {
        "name": law.name,
        "fitted_to": list(law.devices),
        "parameters": {name: _interval(value) for name, value in law.parameters.items()},
        "warnings": list(law.warnings),
        "misfit": law.misfit,
        "predictions": predictions,
    }


def _prediction(prediction: Prediction) -> Json:
    return {
        "devices": prediction.devices,
        "bandwidth_bytes_per_second": prediction.bandwidth,
        "step_seconds": _interval(prediction.step),
        "speed_up": _interval(prediction.speed_up),
        "efficiency": _interval(prediction.efficiency),
    }


def _interval(number: Uncertain | None) -> Json | None:
    return None if number is None else asdict(estimate(number))
