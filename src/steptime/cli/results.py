"""Records as a table and as JSON: the sentence that matters first, then numbers with their doubts, then what failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steptime.analysis.flags import OWN_METRIC, Flag
from steptime.analysis.result import Estimate, Result, result
from steptime.cli import output
from steptime.cli.machine import kept_roof
from steptime.cli.words import described, differing, digits, duration, percent, scaled
from steptime.core.record import Record

Measured = tuple[Record, Result]
GRADES = "Grades: A sure, B good, C noisy or limited, X not valid."


def as_document(records: Sequence[Record]) -> dict[str, Any]:
    return {"session": records[0].session if records else None, "records": [_entry(record) for record in records]}


def _entry(record: Record) -> dict[str, Any]:
    outcome = {"result": result(record).to_dict()} if record.measurements else {"failure": vars(record.failures[-1])}
    return {
        "case": record.case.to_dict(),
        "key": record.case.key,
        "status": record.status,
        **outcome,
        "attempts": [attempt.id for attempt in record.attempts],
        "machine": record.last.machine,
        "software": record.last.software,
    }


def show(records: Sequence[Record]) -> None:
    measured = [(record, result(record)) for record in records if record.measurements]
    failed = [record for record in records if not record.measurements]
    names = differing([record.case for record in records])
    output.say(_sentence(measured, len(records)))
    if measured:
        output.say()
        _details(*measured[0]) if len(records) == 1 else _table(measured, names)
        _doubts(measured)
    for record in failed:
        output.say(f"failed: {described(record.case, names)}: {record.status}. {record.failures[-1].reason}")


def _sentence(measured: Sequence[Measured], count: int) -> str:
    if not measured:
        return f"Nothing was measured: {'the case' if count == 1 else f'all {count} cases'} failed."
    if count == 1:
        record, found = measured[0]
        step = f"{duration(_time(found))} a step ({_sure(found)})"
        return f"{record.case.label}: {step}, {_speed(found)}, grade {found.grade}."
    names = differing([record.case for record, _ in measured])
    (fast, quickest), (slow, slowest) = (f(measured, key=lambda pair: _time(pair[1])) for f in (min, max))
    ends = [
        f"{duration(_time(found))} ({described(record.case, names)})"
        for record, found in ((fast, quickest), (slow, slowest))
    ]
    return f"{len(measured)} of {count} cases measured: a step takes from {ends[0]} to {ends[1]}."


def _details(record: Record, found: Result) -> None:
    numbers, unit = found.speed_numbers, f"{found.unit}/s"
    lines = {
        "typical step": _interval(found.typical_time_seconds),
        "mean step": _interval(found.mean_time_seconds),
        "mean speed": f"{digits(numbers.mean_speed)} {unit}, jitter {digits(numbers.speed_jitter)}, "
        f"uncertainty {digits(numbers.speed_uncertainty)} as if steps were independent",
        "CPU time per step": duration(found.cpu_seconds_per_step),
        "network's arithmetic": _arithmetic(record, found.model_flops_per_second),
        "measured": f"{found.processes} processes, {found.steps:,} steps; id {_id(record)}",
        "protocol": ", ".join([found.protocol["profile"], *(f"{k} = {v}" for k, v in found.protocol_changes.items())]),
    }
    for name, text in lines.items():
        if text:
            output.say(f"{name:<22}{text}")


def _arithmetic(record: Record, flops_per_second: float | None) -> str:
    if flops_per_second is None:
        return ""
    roof = kept_roof(record.last.machine, record.case.device, record.case.precision)
    share = "" if roof is None else f", {percent(flops_per_second / roof)} of the {record.case.precision} roof"
    return scaled(flops_per_second, "FLOP/s") + share


def _interval(found: Estimate) -> str:
    if found.low is None or found.high is None:
        return f"{duration(found.value)} ({found.claim})"
    return f"{duration(found.value)} ({duration(found.low)} … {duration(found.high)}, {found.claim})"


def _table(measured: Sequence[Measured], names: Sequence[str]) -> None:
    rows = [
        [
            *(str(getattr(record.case, name)) for name in names),
            duration(_time(found)),
            _sure(found),
            _speed(found),
            found.grade,
            _id(record),
            ", ".join(dict.fromkeys(flag.name.replace("_", " ") for flag in _said(found))),
        ]
        for record, found in measured
    ]
    heads = [name.replace("_", " ") for name in names]
    output.table(
        [*heads, "typical step", "how sure", "speed", "grade", "id", "doubts"], rows, right=("typical step", "speed")
    )


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
    return found.typical_time_seconds.value


def _sure(found: Result) -> str:
    """The interval, or, where so few processes claim none, how far they lie apart."""
    width = found.typical_time_seconds.half_width
    if width is not None:
        return f"±{percent(width)}"
    each = [process["typical_time_seconds"] for process in found.each_process]
    apart = max(each) / min(each)
    within = percent(apart - 1) if apart < 2 else f"×{digits(apart)}"
    return "one process" if len(each) == 1 else f"{len(each)} within {within}"


def _said(found: Result) -> list[Flag]:
    """Notes, and what limits a percentile alone, are for `--json`."""
    return [flag for flag in found.flags if flag.level != "note" and flag.name not in OWN_METRIC]


def _speed(found: Result) -> str:
    return f"{digits(found.typical_speed_per_second.value)} {found.unit}/s"
