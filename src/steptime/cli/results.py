"""Records as a table and as JSON: the sentence that matters first, then numbers with their doubts, then what failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steptime.analysis.flags import OWN_METRIC, Flag
from steptime.analysis.result import Estimate, Result, result
from steptime.cli import output
from steptime.cli.machine import kept_roof
from steptime.cli.words import described, differing, digits, duration, percent, processes, scaled
from steptime.core.record import Record

Measured = tuple[Record, Result]
NARROW_COLUMNS = 100  # below it a table folds every cell
GRADES = "Grades: A sure, B good, C noisy or limited, X not valid."


def as_document(records: Sequence[Record]) -> dict[str, Any]:
    return {"session": records[0].session if records else None, "records": [_entry(record) for record in records]}


def _entry(record: Record) -> dict[str, Any]:
    outcome: dict[str, Any] = (
        {"failure": vars(record.failures[-1])}
        if not record.measurements
        else {
            "result": result(record).to_dict(),
            "failures": [{"cause": failure.cause, "reason": failure.reason} for failure in record.failures],
        }
    )
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
        _details(*measured[0]) if len(records) == 1 else _rows(measured, names)
        _doubts(measured)
    for record, _ in measured:
        _losses(record, names)
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
    numbers, unit = found.speed_numbers, f"{found.unit}/s"
    lines = {
        "typical step": _interval(found.typical_time_seconds),
        "mean step": _interval(found.mean_time_seconds),
        "mean speed": f"{digits(numbers.mean_speed)} {unit}, jitter {digits(numbers.speed_jitter)}, "
        f"uncertainty {digits(numbers.speed_uncertainty)} as if steps were independent",
        "CPU time per step": duration(found.cpu_seconds_per_step),
        "network's arithmetic": _arithmetic(record, found.model_flops_per_second),
        "measured": f"{processes(found.processes)}, {found.steps:,} steps; id {_id(record)}",
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


def _rows(measured: Sequence[Measured], names: Sequence[str]) -> None:
    _blocks(measured, names) if output.width() < NARROW_COLUMNS else _table(measured, names)


def _table(measured: Sequence[Measured], names: Sequence[str]) -> None:
    rows = [
        [*(str(getattr(record.case, name)) for name in names), *_columns(record, found).values()]
        for record, found in measured
    ]
    heads = [*(name.replace("_", " ") for name in names), *_columns(*measured[0])]
    output.table(heads, rows, right=("typical step", "speed"))


def _blocks(measured: Sequence[Measured], names: Sequence[str]) -> None:
    for number, (record, found) in enumerate(measured):
        if number:
            output.say()
        output.say(described(record.case, names))
        for name, text in _columns(record, found).items():
            if text:
                output.say(f"  {name:<14}{text}")


def _columns(record: Record, found: Result) -> dict[str, str]:
    return {
        "typical step": duration(_time(found)),
        "how sure": _sure(found),
        "speed": _speed(found),
        "grade": found.grade,
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
