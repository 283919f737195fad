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
from steptime.cli.render import accuracy_loss
from steptime.cli.render.format import describe_case, differing_settings, plural, processes
from steptime.cli.render.result_details import rates, show_details, step_seconds
from steptime.cli.stored import short_id
from steptime.core.format import digits, duration, percent
from steptime.core.record import Record

Measured = tuple[Record, Result]
Certificates = Sequence[Certificate]
# A table on a narrower terminal would fold every cell.
NARROW_COLUMNS = 100
# Numbers of different size are easier to compare this way.
RIGHT_ALIGNED = ("typical step", "throughput", "first step")
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
    rows = []
    for record, outcome in measured:
        row = _columns(record, outcome)
        # Only then can two rows of a table be different work.
        if "framework" in names:
            row["certified"] = "yes" if certificate_id(record.last, certificates) else "no"
        rows.append(row)
    # Every value stays on one line, at the cost of more lines.
    if output.width() < NARROW_COLUMNS:
        _show_blocks(measured, names, rows)
    else:
        _show_table(measured, names, rows)


def _show_table(
    measured: Sequence[Measured], names: Sequence[str], rows: Sequence[dict[str, str]]
) -> None:
    filled = [column for column in rows[0] if any(row[column] for row in rows)]
    cells = []
    for (record, _), row in zip(measured, rows, strict=True):
        settings = [str(getattr(record.case, name)) for name in names]
        cells.append([*settings, *(row[column] for column in filled)])
    heads = [name.replace("_", " ") for name in names]
    output.print_table([*heads, *filled], cells, right=RIGHT_ALIGNED)


def _show_blocks(
    measured: Sequence[Measured], names: Sequence[str], rows: Sequence[dict[str, str]]
) -> None:
    for index, ((record, _), row) in enumerate(zip(measured, rows, strict=True)):
        if index:
            output.echo()
        output.echo(describe_case(record.case, names))
        for column, text in row.items():
            if text:
                output.echo(f"  {column:<14}{text}")


def _columns(record: Record, outcome: Result) -> dict[str, str]:
    """The cells of one row; a column without any text is not shown."""
    first_step = ""
    if record.case.mode != "eager":
        # Tracing and compiling are in the first step.
        first_step = duration(outcome.costs.start_seconds.get("first_step", 0.0))
    flags = dict.fromkeys(_title(flag.name) for flag in limiting_flags(outcome.flags))
    return {
        "typical step": duration(step_seconds(outcome)),
        "spread": _spread_text(outcome),
        "throughput": rates(outcome.times.throughput.aggregate),
        "first step": first_step,
        **accuracy_loss.columns(record),
        "grade": outcome.grade,
        "certified": "",
        "id": short_id(record),
        "flags": ", ".join(flags),
    }


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
    """Half the 95 % interval, or, with too few processes for one, how far the farthest is off."""
    typical = outcome.times.typical_time_seconds
    if typical.half_width is not None:
        return f"±{percent(typical.half_width)} (95 %)"
    times = [process["typical_time_seconds"] for process in outcome.spread.each_process]
    count = processes(len(times))
    if len(times) == 1:
        return count
    distances = [abs(time / typical.value - 1) for time in times]
    # Beyond a factor of two a percentage says little.
    if max(distances) >= 1:
        return f"×{digits(max(times) / min(times))} ({count})"
    return f"±{percent(max(distances))} ({count})"
