"""Series as people read them: the sentence that matters, a row for each number of devices, the laws with theirs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from steptime.cli import output
from steptime.core.format import between, digits, duration, percent, scaled

Told = dict[str, Any]
Format = Callable[[float], str]
RATE: Format = partial(scaled, unit="B/s")
HELD = {"weak": "batch {} on each device", "strong": "batch {} on all devices together"}
WORDS: dict[str, tuple[str, Format]] = {
    "serial_share": ("serial share", percent),
    "latency_seconds": ("latency", duration),
    "bandwidth_bytes_per_second": ("bandwidth", RATE),
    "hidden_share": ("hidden share of a step", percent),
}


def show(series: Sequence[Told]) -> None:
    """All sentences first."""
    for one in series:
        output.say(sentence(one))
    if not series:
        output.say("No series could be measured.")
    for one in series:
        output.say()
        _show(one)


def sentence(series: Told) -> str:
    """Of the most devices that had room; where none had, of the most."""
    roomy = [point for point in series["points"][1:] if not point["oversubscribed"]]
    point = (roomy or series["points"])[-1]
    crowd = "" if roomy else f", oversubscribed ({point['oversubscribed']})"
    first = f"{point['devices']} devices ({series['kind']}{crowd}): {between(point['speed_up'], _times)}"
    parts = [first, f"efficiency {between(point['efficiency'], percent)}"]
    told = ", ".join(parts) + _waiting(point)
    return f"{told}. {_outlook(series)}".rstrip()


def _waiting(point: Told) -> str:
    share = point["exposed_share"]
    if share is None:
        return ""
    if share["high"] is not None and share["low"] <= 0 <= share["high"]:
        return f"; at most {percent(share['high'])} of a step waits for communication"
    if share["value"] < 0:
        return "; a step is quicker with communication than without it, which cannot be"
    return f"; {percent(share['value'])} of a step waits for communication"


def _outlook(series: Told) -> str:
    able = [law for law in series["laws"] if law.get("predictions")]
    if not able:
        return "No law can be fitted to it that would tell of more devices."
    said = able[0]["predictions"][0]
    rate = said["bandwidth_bytes_per_second"]
    link = "" if rate is None else f" at {scaled(8 * rate, 'bit/s')}"
    return f"{said['devices']} devices{link} would give {between(said['speed_up'], _times)}."


def _show(series: Told) -> None:
    case, first = series["case"], series["points"][0]
    batch = first["batch_size"] * (1 if series["kind"] == "weak" else first["devices"])
    words = [
        case["workload"],
        case["phase"],
        case["framework"],
        case["mode"],
        case["device"],
        case["precision"],
    ]
    link = [f"over {case['interconnect']}"] if case["interconnect"] else []
    output.say(
        " ".join(
            [f"{series['kind'].capitalize()}, {HELD[series['kind']].format(batch)}:", *words, *link]
        )
    )
    _table([_speeds(point) for point in series["points"]])
    _table(
        [
            _exchange(point)
            for point in series["points"]
            if point["exposed_seconds"] or point["exchange_seconds"]
        ]
    )
    for point in series["points"]:
        for note in point["notes"]:
            output.say(f"{point['devices']} devices: {note}")
    for law in series["laws"]:
        _law(law)


def _table(rows: Sequence[dict[str, str]]) -> None:
    """Columns that say nothing are left out."""
    if rows:
        told = [name for name in rows[0] if any(row[name] for row in rows)]
        output.table(told, [[row[name] for name in told] for row in rows], right=told)
        output.say()


def _speeds(point: Told) -> dict[str, str]:
    several = point["devices"] > 1
    return {
        "devices": str(point["devices"]),
        "step": _about(point["step_seconds"]),
        "without exchange": _about(point["independent_step_seconds"]) if several else "",
        "speed-up": _cell(point["speed_up"], _times) if several else "1×",
        "efficiency": _cell(point["efficiency"], percent) if several else "",
    }


def _exchange(point: Told) -> dict[str, str]:
    """Two tables are narrow enough for a terminal where one is not."""
    return {
        "devices": str(point["devices"]),
        "exposed": _cell(point["exposed_seconds"], duration),
        "overlapped": _cell(point["overlapped_seconds"], duration),
        "exchange alone": _about(point["exchange_seconds"]),
        "latency": _about(point["latency_seconds"]),
        "link": RATE(point["bus_bytes_per_second"]["value"])
        if point["bus_bytes_per_second"]
        else "",
    }


def _law(law: Told) -> None:
    if "no_fit" in law:
        output.say(f"{law['name']}: no fit is possible, {law['no_fit']}.")
        return
    numbers = [f"{word} {between(law['parameters'][name], form)}" for name, (word, form) in WORDS.items()
               if name in law["parameters"]]  # fmt: skip
    output.say(
        f"{law['name']}, fitted to {', '.join(map(str, law['fitted_to']))}: {', '.join(numbers)}."
    )
    if law["misfit"]:
        output.say(f"  it does not hold, {law['misfit']}: nothing is predicted with it")
    for doubt in law["doubts"]:
        output.say(f"  {doubt}")
    for said in law["predictions"]:
        rate = said["bandwidth_bytes_per_second"]
        link = "" if rate is None else f" at {scaled(8 * rate, 'bit/s')}"
        efficiency = between(said["efficiency"], percent)
        output.say(
            f"  {said['devices']} devices{link}: {between(said['speed_up'], _times)}, efficiency {efficiency}"
        )


def _times(value: float) -> str:
    return f"{digits(value)}×" if abs(value) >= 100 else f"{value:.3g}×"


def _about(told: Told | None) -> str:
    if told is None:
        return ""
    if told["low"] is None:
        return duration(told["value"])
    return f"{duration(told['value'])} ±{percent((told['high'] - told['low']) / 2 / told['value'])}"


def _cell(told: Told | None, form: Format) -> str:
    """A unit that all three numbers share is said once."""
    value, brace, ends = between(told, form).partition(" (")
    unit = value.lstrip("-.,0123456789")
    return value + brace + (ends.replace(unit, "") if ends.count(unit) == 2 else ends)
