"""A series and its laws in plain numbers, each with its interval: what a table shows and a program reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from steptime.analysis.scaling.draws import Uncertain, estimate, holds, is_sure
from steptime.analysis.scaling.laws import Law, NoLaw, Prediction, laws, predicted
from steptime.analysis.scaling.series import Point, Series

Wanted = tuple[int, float | None]
"""A number of devices, and a bandwidth in bytes a second where it is not the measured one."""
Told = dict[str, Any]
PAYS_MORE = "a step pays more than the exchange alone takes"


def report(series: Series, wanted: Sequence[Wanted] = ()) -> Told:
    """Without a wish: 4, 8 and 32 times as many devices as were measured and had room."""
    most = max((point.devices for point in series.clean), default=1)
    chosen = wanted or [(most * times, None) for times in (4, 8, 32)]
    return {
        "kind": series.kind,
        "exchange": series.exchange,
        "case": series.case.to_dict(),
        "points": [_point(series, point) for point in series.points],
        "laws": [_law(series, law, chosen) for law in laws(series)],
    }


def _point(series: Series, point: Point) -> Told:
    bare, exposed = point.independent, point.exposed
    return {
        "devices": point.devices,
        "batch_size": point.batch_size,
        "oversubscribed": point.crowded,
        "step_seconds": _told(point.step),
        "independent_step_seconds": _told(bare),
        "speed_up": _told(series.speed_up(point.devices, point.step)),
        "efficiency": _told(series.efficiency(point.devices, point.step)),
        "independent_efficiency": _told(
            None if bare is None else series.efficiency(point.devices, bare)
        ),
        "exposed_seconds": _told(exposed),
        "exposed_share": _told(None if exposed is None else exposed / point.step),
        "exchange_seconds": _told(point.exchange),
        "overlapped_seconds": _told(point.overlapped),
        "waiting": [
            {"pause_seconds": pause, "longer_share": _told(longer)}
            for pause, longer in zip(
                point.waiting.pauses[1:], point.waiting.longer[1:], strict=True
            )
        ],
        "exchanged_bytes": point.exchanged_bytes,
        "bus_bytes_per_second": _told(point.bandwidth),
        "latency_seconds": _told(point.latency),
        "bandwidth_bytes_per_second": _told(point.link),
        "notes": _notes(series, point),
    }


def _notes(series: Series, point: Point) -> list[str]:
    if point is series.first:
        return []
    crowd = f"oversubscribed: {point.crowded}" if point.crowded else ""
    efficiency = series.efficiency(point.devices, point.step)
    beyond = ", beyond its interval" if not holds(efficiency - 1) else ""
    above = f"efficiency is above 100 %{beyond}" if efficiency[0] > 1 else ""
    vague = [name for name in ("exposed", "overlapped") if _is_vague(getattr(point, name))]
    zero = f"{' and '.join(vague)} may be nothing: the interval holds zero" if vague else ""
    hidden = point.overlapped
    odd = hidden is not None and hidden[0] < 0 and not holds(hidden)
    return [note for note in (crowd, above, zero, PAYS_MORE if odd else "") if note]


def _is_vague(number: Uncertain | None) -> bool:
    return number is not None and is_sure(number) and holds(number)


def _law(series: Series, law: Law | NoLaw, wanted: Sequence[Wanted]) -> Told:
    if isinstance(law, NoLaw):
        return {"name": law.name, "no_fit": law.reason}
    several = (predicted(series, law, devices, bandwidth) for devices, bandwidth in wanted)
    return {
        "name": law.name,
        "fitted_to": list(law.devices),
        "parameters": {name: _told(value) for name, value in law.parameters.items()},
        "doubts": list(law.doubts),
        "misfit": law.misfit,
        "predictions": [_prediction(one) for one in several if one],
    }


def _prediction(one: Prediction) -> Told:
    return {
        "devices": one.devices,
        "bandwidth_bytes_per_second": one.bandwidth,
        "step_seconds": _told(one.step),
        "speed_up": _told(one.speed_up),
        "efficiency": _told(one.efficiency),
    }


def _told(number: Uncertain | None) -> Told | None:
    return None if number is None else asdict(estimate(number))
