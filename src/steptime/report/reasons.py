"""Why runs failed, are in quarantine or have flags: equal reasons counted together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from steptime.analysis.result import Result, result
from steptime.core.foreign import ForeignRun
from steptime.core.record import Record
from steptime.index.rows import Row, quarantine_reason

MOST_LINES = 100
# Sizes, addresses and counts differ from run to run and hide that the reason is the same.
NUMBER = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Reason:
    """What is true of several runs alike."""

    what: str
    count: int
    example: str  # the end of a run's id, and its sentence


class ReasonCounter:
    """Reasons that differ only in their numbers are one reason."""

    def __init__(self) -> None:
        self._examples: dict[str, list[str]] = {}

    def add(self, what: str, run_id: str, sentence: str) -> None:
        examples = self._examples.setdefault(NUMBER.sub("#", what), [])
        examples.append(f"{run_id[-8:]}: {sentence}")

    def most_common(self) -> list[Reason]:
        reasons = []
        for what, examples in self._examples.items():
            reasons.append(Reason(what, len(examples), examples[0]))
        reasons.sort(key=lambda reason: -reason.count)
        return reasons[:MOST_LINES]


def row_reasons(rows: Sequence[Row], runs: dict[str, Record | ForeignRun]) -> list[Reason]:
    """Why these rows have no result, or one that cannot be true."""
    counter = ReasonCounter()
    for row in rows:
        reason = _row_reason(row, runs.get(row["id"]))
        sentence = reason.partition(": ")[2] or reason
        counter.add(reason, row["id"], sentence)
    return counter.most_common()


def _row_reason(row: Row, run: Record | ForeignRun | None) -> str:
    if isinstance(run, ForeignRun):
        return f"{run.source}: {run.quarantine or run.failure}"
    if run is not None and row["plausible"] == "no":
        return f"{row['framework']}: {quarantine_reason(result(run))}"
    if run is not None and run.failures:
        failure = run.failures[-1]
        return f"{row['framework']}: {failure.cause}, {failure.reason}"
    return str(row["status"])


def failed_processes(records: Sequence[Record]) -> list[Reason]:
    """Processes that failed although others measured the same case."""
    counter = ReasonCounter()
    for record in records:
        for failure in record.failures:
            what = f"{record.case.framework}: {failure.cause}, {failure.reason}"
            what += " (a process; others measured the case)"
            counter.add(what, record.attempts[0].id, failure.reason)
    return counter.most_common()


def flag_reasons(
    measured: Sequence[tuple[Record, Result]], runs: Sequence[Record | ForeignRun]
) -> list[Reason]:
    """Flags of results measured here, and known faults of imported sources."""
    counter = ReasonCounter()
    for record, numbers in measured:
        for flag in numbers.flags:
            what = f"{flag.name.replace('_', ' ')} ({flag.level})"
            counter.add(what, record.attempts[0].id, flag.evidence)
    for run in runs:
        if isinstance(run, ForeignRun):
            for defect in run.defects:
                counter.add(f"{run.source}: {defect}", run.id, defect)
    return counter.most_common()
