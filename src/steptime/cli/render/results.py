"""Records as a table and as JSON: the sentence that matters first, then numbers with their doubts, then what failed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steptime.analysis import data_type
from steptime.analysis.certificates import Certificate, certified
from steptime.analysis.estimates import Estimate
from steptime.analysis.flags import Flag, limiting_flags
from steptime.analysis.result import Result, result
from steptime.analysis.throughput import Throughput
from steptime.analysis.usage import sentence, usage
from steptime.cli import output
from steptime.cli.render import accuracy_loss
from steptime.cli.render.format import described, differing, processes, scaled
from steptime.cli.request import store_folder
from steptime.core.format import between, digits, duration, percent
from steptime.core.record import Record
from steptime.store.machines import stored_peak

Measured = tuple[Record, Result]
Known = Sequence[Certificate]
NARROW_COLUMNS = 100  # below it a table folds every cell
FIRST = "first step"  # tracing and compiling are in it
GRADES = "Grades: A sure, B good, C noisy or limited, X not valid."


def as_document(records: Sequence[Record], known: Known = ()) -> dict[str, Any]:
    return {
        "session": records[0].session if records else None,
        "records": [_entry(record, known) for record in records],
    }


def _entry(record: Record, known: Known) -> dict[str, Any]:
    outcome: dict[str, Any] = (
        {"failure": vars(record.failures[-1])}
        if not record.measurements
        else {
            "result": result(record).to_dict(),
            "accuracy": record.accuracy,
            "accuracy_differs": record.accuracy_differs,
            "failures": [
                {"cause": failure.cause, "reason": failure.reason} for failure in record.failures
            ],
        }
    )
    return {
        "case": record.case.to_dict(),
        "key": record.case.key,
        "status": record.status,
        **outcome,
        **_beside(record),
        "attempts": [attempt.id for attempt in record.attempts],
        "machine": record.last.machine,
        "software": record.last.software,
        "certified": certified(record.last, known),
    }


def _beside(record: Record) -> dict[str, Any]:
    """What was found out beside the times: where the data lay, what a monitor saw of each process."""
    findings, seen = record.last.findings, [usage(attempt) for attempt in record.attempts]
    told: dict[str, Any] = {
        name: findings[name] for name in ("data", "staging") if name in findings
    }
    return {**told, "monitor": seen} if any(seen) else told


def show(records: Sequence[Record], known: Known = ()) -> None:
    """Rows of several frameworks say whether a certificate proves that they did the same work."""
    measured = [(record, result(record)) for record in records if record.measurements]
    failed = [record for record in records if not record.measurements]
    names = differing([record.case for record in records])
    output.say(_sentence(measured, len(records)))
    if measured:
        output.say()
        _details(*measured[0]) if len(records) == 1 else _rows(measured, names, known)
        _doubts(measured)
    for record, _ in measured:
        _losses(record, names)
    for record in failed:
        output.say(
            f"failed: {described(record.case, names)}: {record.status}. {record.failures[-1].reason}"
        )


def say_stored(records: Sequence[Record], path: Path, *, fresh: bool) -> None:
    """What another try would only repeat is not tried again, though nothing was measured."""
    measured = [bool(record.measurements) for record in records]
    done = "Measured" if all(measured) else "Measured or tried" if any(measured) else "Tried"
    output.say(
        f"\n{'Stored' if fresh else f'{done} before (--again measures anew), stored'} in {path}."
    )


def _sentence(measured: Sequence[Measured], count: int) -> str:
    if not measured:
        return f"Nothing was measured: {'the case' if count == 1 else f'all {count} cases'} failed."
    if count == 1:
        record, found = measured[0]
        step = f"{duration(_time(found))} a step ({_sure(found)})"
        return f"{record.case.label}: {step}, {_speed(found)}, grade {found.grade}."
    names = differing([record.case for record, _ in measured])
    (fast, quickest), (slow, slowest) = (
        f(measured, key=lambda pair: _time(pair[1])) for f in (min, max)
    )
    low, high = duration(_time(quickest)), duration(_time(slowest))
    steps = f"from {low} ({described(fast.case, names)}) to {high} ({described(slow.case, names)})"
    if low == high:
        steps = f"{low} in {'each' if len(measured) > 1 else described(fast.case, names)}"
    return f"{len(measured)} of {count} cases measured: a step takes {steps}."


def _losses(record: Record, names: Sequence[str]) -> None:
    """Processes that failed beside those that measured the case."""
    if not record.failures:
        return
    causes = dict.fromkeys(f"{failure.cause}, {failure.reason}" for failure in record.failures)
    lost = f"{len(record.failures)} of {processes(len(record.attempts))}"
    output.say(f"{lost} of {described(record.case, names)} failed: {' '.join(causes)}")


def _details(record: Record, found: Result) -> None:
    numbers, unit = found.times.speed_numbers, f"{_word(found.times.throughput.unit)}/s"
    lines = {
        "typical step": _interval(found.times.typical_time_seconds),
        "mean step": _interval(found.times.mean_time_seconds),
        "typical speed": _both(found.times.throughput),
        "mean speed": f"{digits(numbers.mean_speed)} {unit} aggregate, jitter {digits(numbers.speed_jitter)}, "
        f"uncertainty {digits(numbers.speed_uncertainty)} as if steps were independent",
        "CPU time per step": duration(found.side_channels.cpu_seconds_per_step)
        + (" of rank 0" if record.case.ranks > 1 else ""),
        "exchange alone": _exchange(found.costs.exchange),
        "ranks": _ranks(found.spread.each_process[-1]["ranks"]),
        "start-up": _start(record, found),
        "network's arithmetic": _arithmetic(record, found.costs.model_flops_per_second),
        **accuracy_loss.lines(record),
        "data": data_type.sentence(record),
        "staging": data_type.staging(record),
        "watched": sentence(record),
        "measured": f"{processes(found.spread.processes)}, {found.spread.steps:,} steps; id {_id(record)}",
        "protocol": ", ".join(
            [
                found.identity.protocol["preset"],
                *(f"{k} = {v}" for k, v in found.identity.protocol_changes.items()),
            ]
        ),
    }
    for name, text in lines.items():
        if text:
            output.say(f"{name:<22}{text}")


def _arithmetic(record: Record, flops_per_second: float | None) -> str:
    if flops_per_second is None:
        return ""
    case = record.case
    fingerprint = record.last.machine.get("fingerprint")
    peak = stored_peak(store_folder(), fingerprint, case.device, case.precision)
    # The ranks of a node's CPU share its peak; GPU ranks have one each.
    count = case.nodes if case.device == "cpu" else case.ranks
    share = (
        ""
        if peak is None
        else f", {percent(flops_per_second / peak / count)} of the {case.precision} peak"
    )
    return scaled(flops_per_second, "FLOP/s") + share


def _exchange(found: dict[str, Any] | None) -> str:
    if found is None:
        return ""
    low, high = (duration(edge(found["seconds"])) for edge in (min, max))
    rate = scaled(found["bus_bytes_per_second"], "B/s")
    told = f"{scaled(found['bytes'], 'B')} by {found['backend']} in {low} … {high}, {rate} over each link"
    latency = found.get("latency_seconds")
    return told if latency is None else f"{told}; latency {between(latency, duration)}"


def _ranks(each: Sequence[dict[str, Any]]) -> str:
    if not each:
        return ""
    nodes = len({rank["node"] for rank in each})
    low, high = (duration(edge(rank["mean_time_seconds"] for rank in each)) for edge in (min, max))
    where = "1 node" if nodes == 1 else f"{nodes} nodes"
    return f"{len(each)} on {where}; of the last process, a mean step takes them {low} … {high} by their own clocks"


def _interval(found: Estimate) -> str:
    if found.low is None or found.high is None:
        return f"{duration(found.value)} ({found.claim})"
    return (
        f"{duration(found.value)} ({duration(found.low)} … {duration(found.high)}, {found.claim})"
    )


def _rows(measured: Sequence[Measured], names: Sequence[str], known: Known) -> None:
    cells = [_columns(record, found) for record, found in measured]
    if "framework" in names:
        for (record, _), row in zip(measured, cells, strict=True):
            row["certified"] = "yes" if certified(record.last, known) else "no"
    (_blocks if output.width() < NARROW_COLUMNS else _table)(measured, names, cells)


def _table(
    measured: Sequence[Measured], names: Sequence[str], cells: Sequence[dict[str, str]]
) -> None:
    told = [name for name in cells[0] if any(row[name] for row in cells)]
    rows = [
        [*(str(getattr(record.case, name)) for name in names), *(row[name] for name in told)]
        for (record, _), row in zip(measured, cells, strict=True)
    ]
    heads = [*(name.replace("_", " ") for name in names), *told]
    output.table(heads, rows, right=("typical step", "speed", FIRST))


def _blocks(
    measured: Sequence[Measured], names: Sequence[str], cells: Sequence[dict[str, str]]
) -> None:
    for number, ((record, _), row) in enumerate(zip(measured, cells, strict=True)):
        if number:
            output.say()
        output.say(described(record.case, names))
        for name, text in row.items():
            if text:
                output.say(f"  {name:<14}{text}")


def _columns(record: Record, found: Result) -> dict[str, str]:
    return {
        "typical step": duration(_time(found)),
        "how sure": _sure(found),
        "speed": _speed(found),
        FIRST: ""
        if record.case.mode == "eager"
        else duration(found.costs.start_seconds.get("first_step", 0.0)),
        **accuracy_loss.columns(record),
        "grade": found.grade,
        "certified": "",  # said where frameworks differ
        "id": _id(record),
        "doubts": ", ".join(dict.fromkeys(flag.name.replace("_", " ") for flag in _said(found))),
    }


def _doubts(measured: Sequence[Measured]) -> None:
    """Each doubt once, with the first case's evidence."""
    evidence: dict[str, list[str]] = {}
    for _, found in measured:
        for flag in _said(found):
            evidence.setdefault(flag.name, []).append(flag.evidence)
    output.say()
    for name, words in evidence.items():
        others = f" (and in {len(words) - 1} more)" if len(words) > 1 else ""
        output.say(f"{name.replace('_', ' ')}: {words[0]}{others}")
    output.say(GRADES)


def _id(record: Record) -> str:
    """The end of an id is its random part: enough to name it to `compare`."""
    return record.attempts[0].id[-8:]


def _time(found: Result) -> float:
    return found.times.typical_time_seconds.value


def _sure(found: Result) -> str:
    """The interval, or, where so few processes claim none, how far they lie apart."""
    width = found.times.typical_time_seconds.half_width
    if width is not None:
        return f"±{percent(width)}"
    each = [process["typical_time_seconds"] for process in found.spread.each_process]
    apart = max(each) / min(each)
    within = percent(apart - 1) if apart < 2 else f"×{digits(apart)}"
    return "one process" if len(each) == 1 else f"{len(each)} within {within}"


def _said(found: Result) -> list[Flag]:
    """Notes, and what limits a percentile alone, are for `--json`."""
    return limiting_flags(found.flags)


def _speed(found: Result) -> str:
    """Of all devices together."""
    return _rates(found.times.throughput.aggregate)


def _both(speed: Throughput) -> str:
    if speed.devices == 1:
        return f"{_rates(speed.per_device)}, per device and aggregate: it is 1 device"
    return f"{_rates(speed.per_device)} per device, {_rates(speed.aggregate)} aggregate over {speed.devices} devices"


def _rates(speeds: dict[str, Estimate]) -> str:
    return ", ".join(f"{digits(speed.value)} {_word(unit)}/s" for unit, speed in speeds.items())


def _word(unit: str) -> str:
    return unit.replace("_", " ")


def _start(record: Record, found: Result) -> str:
    """What compiling costs is in the first step, unless a compiler kept it from an earlier run."""
    parts = [
        f"{name.replace('_', ' ')} {duration(seconds)}"
        for name, seconds in found.costs.start_seconds.items()
    ]
    return ", ".join([*parts, f"compile cache {record.case.compile_cache}"])
