"""Results as text and as JSON: a headline, then the numbers with their flags, then the failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steptime.analysis.certificates import Certificate, certificate_id
from steptime.analysis.flags import limiting_flags
from steptime.analysis.result import Result, result
from steptime.analysis.usage import usage
from steptime.cli import output
from steptime.cli.psc_archive import ARCHIVED
from steptime.cli.render import accuracy_loss, percentiles
from steptime.cli.render.format import describe_case, differing_settings, plural, processes
from steptime.cli.render.result_details import rates, show_details, step_seconds
from steptime.cli.render.table import Column, print_table, quantity
from steptime.cli.stored import short_id
from steptime.core.format import digits, duration, percent
from steptime.core.record import Record

Measured = tuple[Record, Result]
Certificates = Sequence[Certificate]
# The order in which a narrow terminal leaves columns out, from the largest. Settings never go:
# they tell the rows apart.
DROPS = {
    "p50": 14,
    "logit error": 13,
    "first step": 12,
    "processes": 11,
    "certified": 10,
    "p90": 9,
    "flags": 8,
    "task": 7,
    "p99": 6,
    "top-1 agrees": 5,
    "id": 4,
    "spread": 2,
    "grade": 1,
    "typical step": 0,
}
# Of the columns that are named after a unit, such as images/s.
THROUGHPUT_DROP = 3
# Columns of words with the least width in which they may wrap; 0: never.
TEXTS = {"processes": 0, "grade": 0, "certified": 0, "id": 0, "flags": 16}
SPREAD = (
    "spread: half of the 95 % interval (95 %); without one, how far the farthest process is off."
)
INVALID = "X"
GRADES = "Grades: A reliable, B good, C noisy or limited, X not valid."


def to_document(records: Sequence[Record], certificates: Certificates = ()) -> dict[str, Any]:
    return {
        "session": records[0].session if records else None,
        "records": [_entry(record, certificates) for record in records],
    }


def _entry(record: Record, certificates: Certificates) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "case": record.case.to_dict(),
        "key": record.case.key,
        "status": record.status,
    }
    if record.measurements:
        entry["result"] = result(record).to_dict()
        entry["accuracy"] = record.accuracy
        entry["accuracy_differs"] = record.accuracy_differs
        entry["task"] = record.task
        entry["failures"] = [
            {"cause": failure.cause, "reason": failure.reason} for failure in record.failures
        ]
    else:
        entry["failure"] = vars(record.failures[-1])
    for name in ("data", "staging"):
        if name in record.last.findings:
            entry[name] = record.last.findings[name]
    monitored = [usage(attempt) for attempt in record.attempts]
    if any(monitored):
        entry["monitor"] = monitored
    entry["attempts"] = [attempt.id for attempt in record.attempts]
    entry["machine"] = record.last.machine
    entry["software"] = record.last.software
    entry["certified"] = certificate_id(record.last, certificates)
    return entry


def show(records: Sequence[Record], certificates: Certificates = ()) -> None:
    measured = [(record, result(record)) for record in records if record.measurements]
    failed = [record for record in records if not record.measurements]
    names = differing_settings([record.case for record in records])
    output.echo(_headline(measured, len(records)))
    if measured:
        output.echo()
        if len(records) == 1:
            show_details(*measured[0])
        else:
            _show_rows(measured, names, certificates)
        _show_flags(measured)
    for record, _ in measured:
        _show_failed_processes(record, names)
    for record in failed:
        label = describe_case(record.case, names)
        output.echo(f"failed: {label}: {record.status}. {record.failures[-1].reason}")


def show_stored(records: Sequence[Record], path: Path, *, fresh: bool) -> None:
    """Say where the results are, and whether any of them is new."""
    if fresh:
        output.echo(f"\nStored in {path}.")
        return
    # A case whose failure another try would repeat is not tried again.
    verb = "Tried"
    if any(record.measurements for record in records):
        verb = "Measured or tried"
    if all(record.measurements for record in records):
        verb = "Measured"
    output.echo(f"\n{verb} before, stored in {path}; --again measures again.")


def show_archive(paths: Sequence[Path], folder: Path) -> None:
    counts = Counter(path.suffix for path in paths)
    tables, charts = counts[".csv"], counts[".svg"]
    runs = len(paths) - tables - charts
    older = f"; older ones are in {ARCHIVED}" if (folder / ARCHIVED).exists() else ""
    counted = ", ".join([plural(runs, "run"), plural(tables, "table"), plural(charts, "chart")])
    output.echo(f"\n{folder}: {counted}{older}.")


def _headline(measured: Sequence[Measured], count: int) -> str:
    if not measured:
        cases = "the case" if count == 1 else f"all {count} cases"
        return f"Nothing was measured: {cases} failed."
    if count == 1:
        return _single_headline(*measured[0])
    names = differing_settings([record.case for record, _ in measured])
    valid = [pair for pair in measured if pair[1].grade != INVALID]
    start = f"{len(measured)} of {count} cases measured"
    if not valid:
        return f"{start}, none of them valid."
    if len(valid) < len(measured):
        start += f", {len(valid)} of them valid"
    # Both ends, with the case of each: the range of what was measured.
    fastest, fast = min(valid, key=lambda pair: step_seconds(pair[1]))
    slowest, slow = max(valid, key=lambda pair: step_seconds(pair[1]))
    low, high = duration(step_seconds(fast)), duration(step_seconds(slow))
    first = describe_case(fastest.case, names)
    last = describe_case(slowest.case, names)
    if len(valid) == 1:
        steps = f"{low} ({first})"
    elif low == high:
        steps = f"{low} in each"
    else:
        steps = f"from {low} ({first}) to {high} ({last})"
    return f"{start}: a step takes {steps}."


def _single_headline(record: Record, outcome: Result) -> str:
    spread = _spread_text(outcome)
    time = duration(step_seconds(outcome))
    if outcome.spread.processes == 1:
        spread = f"({spread})"
    throughput = rates(outcome.times.throughput.aggregate)
    grade = f"grade {outcome.grade}"
    invalid = [_title(flag.name) for flag in outcome.flags if flag.level == "invalid"]
    if invalid:
        grade += f" ({', '.join(dict.fromkeys(invalid))})"
    return f"{record.case.label}: {time} per step {spread}, {throughput}, {grade}."


def _show_failed_processes(record: Record, names: Sequence[str]) -> None:
    """Processes that failed beside those that measured the case."""
    if not record.failures:
        return
    # A dictionary removes duplicates and keeps the order.
    causes = dict.fromkeys(f"{failure.cause}, {failure.reason}" for failure in record.failures)
    count = f"{len(record.failures)} of {processes(len(record.attempts))}"
    output.echo(f"{count} of {describe_case(record.case, names)} failed: {' '.join(causes)}")


def _show_rows(
    measured: Sequence[Measured], names: Sequence[str], certificates: Certificates
) -> None:
    """With several frameworks a row says whether certificates prove that they did the same work."""
    units: dict[str, None] = {}
    for _, outcome in measured:
        units |= dict.fromkeys(outcome.times.throughput.aggregate)
    rows = []
    for record, outcome in measured:
        settings = [str(getattr(record.case, name)) for name in names]
        row = _cells(record, outcome, list(units))
        # Only then can two rows of a table be different work.
        if "framework" in names:
            row["certified"] = "yes" if certificate_id(record.last, certificates) else "no"
        rows.append([*settings, *row.values()])
    columns = [Column(name.replace("_", " ")) for name in names]
    print_table([*columns, *map(_column, row)], rows)
    if any(len(outcome.spread.each_process) > 1 for _, outcome in measured):
        output.echo(SPREAD)
    _show_percentile_notes(measured)


def _column(name: str) -> Column:
    drop = DROPS.get(name, THROUGHPUT_DROP)
    if name in TEXTS:
        return Column(name, least=TEXTS[name], drop=drop)
    return quantity(name, drop=drop)


def _cells(record: Record, outcome: Result, units: Sequence[str]) -> dict[str, str]:
    """The cells of one row; a column without any text is not shown."""
    first_step = ""
    if record.case.mode != "eager":
        # Tracing and compiling are in the first step.
        first_step = duration(outcome.costs.start_seconds.get("first_step", 0.0))
    flags = dict.fromkeys(_title(flag.name) for flag in limiting_flags(outcome.flags))
    speeds = outcome.times.throughput.aggregate
    throughput = {}
    for unit in units:
        speed = digits(speeds[unit].value) if unit in speeds else ""
        throughput[f"{_title(unit)}/s"] = speed
    return {
        "typical step": duration(step_seconds(outcome)),
        "spread": _spread_cell(outcome),
        **throughput,
        **percentiles.cells(record.case, outcome),
        "first step": first_step,
        **accuracy_loss.columns(record),
        "processes": str(outcome.spread.processes),
        "grade": outcome.grade,
        "certified": "",
        "id": short_id(record),
        "flags": ", ".join(flags),
    }


def _show_percentile_notes(measured: Sequence[Measured]) -> None:
    """What the percentiles mean, and why some results lack them."""
    meanings: dict[str, None] = {}
    reasons: dict[str, list[str]] = {}
    for record, outcome in measured:
        if any(percentiles.cells(record.case, outcome).values()):
            meanings[percentiles.meaning(record.case)] = None
        reason = percentiles.explain_missing(record.case, outcome)
        if reason:
            reasons.setdefault(reason, []).append(short_id(record))
    for text in meanings:
        output.echo(f"{', '.join(percentiles.NAMES)}: {text}.")
    for reason, ids in reasons.items():
        output.echo(f"percentiles of {', '.join(ids)}: {reason}.")


def _show_flags(measured: Sequence[Measured]) -> None:
    """Each flag once, with the evidence of the first case that has it."""
    evidence: dict[str, list[str]] = {}
    for _, outcome in measured:
        for flag in limiting_flags(outcome.flags):
            evidence.setdefault(flag.name, []).append(flag.evidence)
    output.echo()
    for name, texts in evidence.items():
        others = f" (and in {len(texts) - 1} more)" if len(texts) > 1 else ""
        output.echo(f"{_title(name)}: {texts[0]}{others}")
    output.echo(GRADES)


def _title(flag_name: str) -> str:
    return flag_name.replace("_", " ")


def _spread_text(outcome: Result) -> str:
    """With the number of processes, if there are too few for an interval."""
    count = processes(outcome.spread.processes)
    spread = _spread_cell(outcome)
    if not spread:
        return count
    has_interval = outcome.times.typical_time_seconds.half_width is not None
    return spread if has_interval else f"{spread} ({count})"


def _spread_cell(outcome: Result) -> str:
    """Half the 95 % interval, or, with too few processes for one, how far the farthest is off."""
    typical = outcome.times.typical_time_seconds
    if typical.half_width is not None:
        return f"±{percent(typical.half_width)} (95 %)"
    times = [process["typical_time_seconds"] for process in outcome.spread.each_process]
    if len(times) == 1:
        return ""
    distances = [abs(time / typical.value - 1) for time in times]
    # Beyond a factor of two a percentage says little.
    if max(distances) >= 1:
        return f"×{digits(max(times) / min(times))}"
    return f"±{percent(max(distances))}"
