"""Scaling series as text: the headline, a row per number of devices, then the scaling laws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from steptime.cli import output
from steptime.cli.render.table import print_table, quantity
from steptime.core.format import digits, duration, percent, with_interval, with_prefix

# Series, points and laws as `analysis/scaling/report.py` makes them for JSON.
Facts = dict[str, Any]
Format = Callable[[float], str]
rate_text: Format = partial(with_prefix, unit="B/s")
BATCHES = {"weak": "batch {} on each device", "strong": "batch {} on all devices together"}
# Left out of a narrow terminal in this order, from the largest.
DROPS = {
    "latency": 5,
    "link": 4,
    "exchange alone": 3,
    "overlapped": 2,
    "without exchange": 2,
    "efficiency": 1,
}
PARAMETERS: dict[str, tuple[str, Format]] = {
    "serial_share": ("serial share", percent),
    "latency_seconds": ("latency", duration),
    "bandwidth_bytes_per_second": ("bandwidth", rate_text),
    "hidden_share": ("hidden share of a step", percent),
}


def show(all_series: Sequence[Facts]) -> None:
    """All headlines first."""
    for series in all_series:
        output.echo(headline(series))
    if not all_series:
        output.echo("No series could be measured.")
    for series in all_series:
        output.echo()
        _show_series(series)


def headline(series: Facts) -> str:
    """About the largest number of devices that was not oversubscribed, if there is one."""
    roomy = [point for point in series["points"][1:] if not point["oversubscribed"]]
    # The largest; series are sorted by the number of devices.
    point = (roomy or series["points"])[-1]
    crowd = "" if roomy else f", oversubscribed ({point['oversubscribed']})"
    devices = f"{point['devices']} devices ({series['kind']}{crowd})"
    speed_up = with_interval(point["speed_up"], _factor)
    efficiency = with_interval(point["efficiency"], percent)
    sentence = f"{devices}: {speed_up}, efficiency {efficiency}{_communication(point)}."
    return f"{sentence} {_prediction_sentence(series)}"


def _communication(point: Facts) -> str:
    share = point["exposed_share"]
    if share is None:
        return ""
    # The interval includes zero: only an upper limit is known.
    if share["high"] is not None and share["low"] <= 0 <= share["high"]:
        return f"; at most {percent(share['high'])} of a step waits for communication"
    if share["value"] < 0:
        return "; a step is faster with communication than without, which is impossible"
    return f"; {percent(share['value'])} of a step waits for communication"


def _prediction_sentence(series: Facts) -> str:
    predicting = [law for law in series["laws"] if law.get("predictions")]
    if not predicting:
        return "No scaling law fits it, so nothing is predicted for more devices."
    prediction = predicting[0]["predictions"][0]
    speed_up = with_interval(prediction["speed_up"], _factor)
    return f"{_predicted_devices(prediction)} would give {speed_up}."


def _predicted_devices(prediction: Facts) -> str:
    rate = prediction["bandwidth_bytes_per_second"]
    link = "" if rate is None else f" at {with_prefix(8 * rate, 'bit/s')}"
    return f"{prediction['devices']} devices{link}"


def _show_series(series: Facts) -> None:
    output.echo(_title(series))
    _show_table([_speed_row(point) for point in series["points"]])
    exchanging = []
    for point in series["points"]:
        if point["exposed_seconds"] or point["exchange_seconds"]:
            exchanging.append(_exchange_row(point))
    _show_table(exchanging)
    for point in series["points"]:
        for note in point["notes"]:
            output.echo(f"{point['devices']} devices: {note}")
    for law in series["laws"]:
        _show_law(law)


def _title(series: Facts) -> str:
    case, first = series["case"], series["points"][0]
    kind = series["kind"]
    batch = first["batch_size"] * (1 if kind == "weak" else first["devices"])
    names = ("workload", "phase", "framework", "mode", "device", "precision")
    settings = [case[name] for name in names]
    if case["interconnect"]:
        settings.append(f"over {case['interconnect']}")
    return f"{kind.capitalize()}, {BATCHES[kind].format(batch)}: {' '.join(settings)}"


def _show_table(rows: Sequence[dict[str, str]]) -> None:
    if not rows:
        return
    columns = [quantity(name, drop=DROPS.get(name, 0)) for name in rows[0]]
    print_table(columns, [list(row.values()) for row in rows])
    output.echo()


def _speed_row(point: Facts) -> dict[str, str]:
    row = {"devices": str(point["devices"]), "step": _plus_minus(point["step_seconds"])}
    if point["devices"] == 1:
        return row | {"without exchange": "", "speed-up": "1×", "efficiency": ""}
    row["without exchange"] = _plus_minus(point["independent_step_seconds"])
    row["speed-up"] = _interval_cell(point["speed_up"], _factor)
    row["efficiency"] = _interval_cell(point["efficiency"], percent)
    return row


def _exchange_row(point: Facts) -> dict[str, str]:
    """A table of its own: one for all columns would be too wide for a terminal."""
    rate = point["bus_bytes_per_second"]
    return {
        "devices": str(point["devices"]),
        "exposed": _interval_cell(point["exposed_seconds"], duration),
        "overlapped": _interval_cell(point["overlapped_seconds"], duration),
        "exchange alone": _plus_minus(point["exchange_seconds"]),
        "latency": _plus_minus(point["latency_seconds"]),
        "link": rate_text(rate["value"]) if rate else "",
    }


def _show_law(law: Facts) -> None:
    if "no_fit" in law:
        output.echo(f"{law['name']}: no fit is possible, {law['no_fit']}.")
        return
    parameters = []
    for name, (title, form) in PARAMETERS.items():
        if name in law["parameters"]:
            parameters.append(f"{title} {with_interval(law['parameters'][name], form)}")
    devices = ", ".join(map(str, law["fitted_to"]))
    output.echo(f"{law['name']}, fitted to {devices}: {', '.join(parameters)}.")
    if law["misfit"]:
        output.echo(f"  it does not fit, {law['misfit']}: it predicts nothing")
    for flag in law["warnings"]:
        output.echo(f"  {flag}")
    for prediction in law["predictions"]:
        speed_up = with_interval(prediction["speed_up"], _factor)
        efficiency = with_interval(prediction["efficiency"], percent)
        label = _predicted_devices(prediction)
        output.echo(f"  {label}: {speed_up}, efficiency {efficiency}")


def _factor(value: float) -> str:
    return f"{digits(value)}×" if abs(value) >= 100 else f"{value:.3g}×"


def _plus_minus(estimate: Facts | None) -> str:
    if estimate is None:
        return ""
    value = duration(estimate["value"])
    if estimate["low"] is None:
        return value
    half_width = (estimate["high"] - estimate["low"]) / 2 / estimate["value"]
    return f"{value} ±{percent(half_width)}"


def _interval_cell(estimate: Facts | None, form: Format) -> str:
    """A unit that all three numbers share is printed once: `4 ms (3.9 … 4.1)`."""
    value, brace, ends = with_interval(estimate, form).partition(" (")
    unit = value.lstrip("-.,0123456789")
    if ends.count(unit) == 2:
        ends = ends.replace(unit, "")
    return value + brace + ends
