"""What was imported, what was not, and why: as text and as JSON."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from steptime.cli import output
from steptime.cli.render.table import Column, print_table, quantity
from steptime.core.format import shorten

if TYPE_CHECKING:
    from steptime.core.foreign import ForeignRun
    from steptime.formats import Original, Reading


NOT_RECOGNISED = "no reader recognises it"
# Of unrecognised files, unless --rows asks for all.
MOST_NAMES = 20
LONGEST_REASON = 120
# Of reasons: the outcome and the count before them.
MARGIN = 21
# Also 1.5e-3, but no sign: a minus may be a hyphen.
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")


@dataclass
class ImportSummary:
    """What became of the files so far."""

    readings: list[tuple[Original, Reading]] = field(default_factory=list)
    changed: int = 0
    # A file, and the one that it is a copy of.
    duplicates: dict[str, str] = field(default_factory=dict)
    unrecognised: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)

    def by_format(self) -> dict[str, list[Reading]]:
        groups: dict[str, list[Reading]] = {}
        for _, reading in self.readings:
            groups.setdefault(reading.source, []).append(reading)
        return dict(sorted(groups.items()))


class ImportedRow(NamedTuple):
    file: str
    location: str
    outcome: str
    reason: str


def show(summary: ImportSummary, *, rows: bool) -> None:
    from steptime import formats

    if rows:
        for row in _rows(summary):
            colon = ": " if row.reason else ""
            reason = " ".join(row.reason.split())
            output.echo(f"{row.file}  {row.location}  {row.outcome}{colon}{reason}")
    by_format = summary.by_format()
    if by_format:
        lines = {formats.title(name): _counts(readings) for name, readings in by_format.items()}
        lines["total"] = _total(summary)
        heads = list(lines["total"])
        table = [[name, *(f"{counts[head]:,}" for head in heads)] for name, counts in lines.items()]
        print_table([Column("format", least=20, stays=True), *map(quantity, heads)], table)
    for name, readings in by_format.items():
        for outcome, reasons in _reasons(readings).items():
            for reason, count in reasons.most_common():
                output.echo_labelled(f"{outcome:>11}  {count:>6,}", f"{name}: {reason}", MARGIN)
    _show_other_files(summary, rows=rows)


def _show_other_files(summary: ImportSummary, *, rows: bool) -> None:
    if summary.duplicates:
        output.echo(f"{len(summary.duplicates)} files have the same content as another of them.")
    for name, reason in summary.unreadable.items():
        output.warn(f"note: {name}: {reason}")
    names = summary.unrecognised if rows else summary.unrecognised[:MOST_NAMES]
    for name in names:
        output.echo(f"{name}: {NOT_RECOGNISED}")
    hidden = len(summary.unrecognised) - len(names)
    if hidden:
        output.echo(f"and {hidden} more: {NOT_RECOGNISED}; --rows lists them.")
    if summary.readings and not summary.changed:
        output.echo("Everything was in the store already: nothing changed.")


def to_document(summary: ImportSummary, *, rows: bool) -> dict[str, Any]:
    formats: dict[str, dict[str, Any]] = {}
    for name, readings in summary.by_format().items():
        formats[name] = {**_counts(readings), "reasons": _reasons(readings)}
    document: dict[str, Any] = {
        "formats": formats,
        "total": _total(summary),
        "files_changed": summary.changed,
        "duplicates": summary.duplicates,
        "unrecognised": summary.unrecognised,
        "unreadable": summary.unreadable,
    }
    if rows:
        document["rows"] = [row._asdict() for row in _rows(summary)]
    return document


def _total(summary: ImportSummary) -> dict[str, int]:
    return _counts([reading for _, reading in summary.readings])


def _counts(readings: list[Reading]) -> dict[str, int]:
    runs = _runs(readings)
    return {
        "files": len(readings),
        "rows": len(runs),
        "failed": sum(bool(run.failure) for run in runs),
        "skipped": sum(len(reading.skipped) for reading in readings),
        "quarantined": sum(bool(run.quarantine) for run in runs),
    }


def _reasons(readings: list[Reading]) -> dict[str, Counter[str]]:
    """Grouped: reasons that differ only in numbers are one."""
    counts: dict[str, Counter[str]] = {
        name: Counter() for name in ("failed", "skipped", "quarantined", "flagged")
    }
    for reading in readings:
        for skipped in reading.skipped:
            counts["skipped"][_general(skipped.reason)] += 1
    for run in _runs(readings):
        if run.failure:
            counts["failed"][_general(run.failure)] += 1
        if run.quarantine:
            counts["quarantined"][_general(run.quarantine)] += 1
        else:
            counts["flagged"].update(_general(defect) for defect in run.defects)
    return counts


def _general(reason: str) -> str:
    """The first line with its numbers replaced."""
    return shorten(NUMBER.sub("#", reason.split("\n")[0]), LONGEST_REASON)


def _runs(readings: list[Reading]) -> list[ForeignRun]:
    return [run for reading in readings for run in reading.runs]


def _rows(summary: ImportSummary) -> Iterator[ImportedRow]:
    for original, reading in summary.readings:
        for run in reading.runs:
            if run.failure:
                yield ImportedRow(original.name, run.location, "failed", run.failure)
            elif run.quarantine:
                yield ImportedRow(original.name, run.location, "quarantined", run.quarantine)
            else:
                defects = "; ".join(run.defects)
                yield ImportedRow(original.name, run.location, "imported", defects)
        for skipped in reading.skipped:
            yield ImportedRow(original.name, skipped.location, "skipped", skipped.reason)
