"""Read a journal back into an attempt, in whatever state its writer left it. Changes nothing."""

from __future__ import annotations

import json
from dataclasses import fields
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

from steptime.core import accuracy
from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.core.errors import SteptimeError
from steptime.core.measurement import Block, Measurement, RankSamples
from steptime.core.protocol import Protocol
from steptime.core.record import OUTPUT_LINES, Attempt, Failure
from steptime.core.secrets import redact, redact_environment, redact_text
from steptime.store.journal import is_running
from steptime.store.versions import JOURNAL_SCHEMA, schema_problem

NO_END = "No end line: the process was killed or the machine went down."
# Of a log: its last lines are in the last bytes.
OUTPUT_BYTES = 65_536

Line = dict[str, Any]


def read(path: Path, problems: list[str] | None = None) -> Attempt | None:
    """None: nothing is written yet, or nothing is readable; then `problems` says why."""
    if problems is None:
        problems = []
    try:
        return parse(path.read_bytes(), path, problems)
    except FileNotFoundError:
        # A compactor has moved it into a part.
        return None
    except OSError as problem:
        problems.append(f"{path}: not readable ({problem.strerror}); it is left as it is.")
        return None


def parse(data: bytes, path: Path, problems: list[str]) -> Attempt | None:
    """Read a journal's text, wherever it is kept. `path` is opened only if the end is missing."""
    try:
        lines = _parse_lines(data, path, problems)
        return _parse_attempt(path, lines, problems) if lines else None
    except (SteptimeError, KeyError, TypeError, ValueError, AttributeError) as problem:
        problems.append(
            f"{path}: not readable ({type(problem).__name__}: {problem}); it is left as it is."
        )
        return None


def has_ended(path: Path) -> bool:
    if not path.exists():
        return False
    lines = _parse_lines(path.read_bytes(), path, [])
    return _first_line(lines, "end") is not None


def last_output(log: Path) -> str:
    """The end of what a process printed."""
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - OUTPUT_BYTES))
        text = file.read().decode(errors="replace")
    return "\n".join(text.splitlines()[-OUTPUT_LINES:])


def _parse_lines(data: bytes, path: Path, problems: list[str]) -> list[Line]:
    """Complete lines only. A killed writer leaves a torn last one, which is no problem."""
    lines: list[Line] = []
    damaged: list[int] = []
    texts = data.split(b"\n")
    for number, text in enumerate(texts, 1):
        try:
            value = json.loads(text) if text else None
        except ValueError:
            value = None
            if number < len(texts):
                damaged.append(number)
        if isinstance(value, dict):
            lines.append(value)
    if damaged:
        more = f" and {len(damaged) - 1} more" if len(damaged) > 1 else ""
        problems.append(f"{path}: skipped damaged line {damaged[0]}{more}.")
    return lines


def _first_line(lines: list[Line], name: str) -> Line | None:
    for line in lines:
        if line.get("line") == name:
            return line
    return None


def _parse_attempt(path: Path, lines: list[Line], problems: list[str]) -> Attempt | None:
    begin = lines[0]
    if begin.get("line") != "begin":
        raise ValueError("the first line does not begin an attempt")
    if problem := schema_problem(begin["schema"], JOURNAL_SCHEMA):
        raise ValueError(problem)
    context = _first_line(lines, "context") or {}
    end = _first_line(lines, "end")
    if end is None and is_running(path):
        return None
    case = Case.from_dict(begin["case"])
    findings = end.get("findings", {}) if end else {}
    measurement, failure = _outcome(path, end, lines, problems)
    # A measurement in low precision without its accuracy loss must not be ranked.
    if measurement and (lacking := accuracy.explain_missing_accuracy(case.precision, findings)):
        measurement = None
        failure = Failure(cause=Cause.CRASHED, reason=lacking)
    return Attempt(
        id=begin["id"],
        session=begin["session"],
        plan=begin["plan"],
        process=begin["process"],
        case=case,
        protocol=Protocol.from_dict(begin["protocol"]),
        started=begin["started"],
        machine=context.get("machine", {}),
        software=context.get("software", {}),
        network=context.get("network", {}),
        program=context.get("program", ""),
        # Older versions stored whatever the environment held.
        environment=redact_environment(begin["environment"]),
        pair=begin["pair"],
        ended=end["ended"] if end else "",
        task=begin.get("task", "measure"),
        measurement=measurement,
        findings=findings,
        failure=failure,
    )


def _outcome(
    path: Path, end: Line | None, lines: list[Line], problems: list[str]
) -> tuple[Measurement | None, Failure | None]:
    if end is None:
        output = redact_text(last_output(path.with_suffix(".log")))
        return None, Failure(cause=Cause.CRASHED, reason=NO_END, output=output)
    if end["failure"] is not None:
        return None, Failure.from_dict(redact(end["failure"]))
    if end["measurement"] is None:
        return None, None
    samples = [line for line in lines if line.get("line") == "sample"]
    measurement = _parse_measurement(end["measurement"], samples)
    if measurement is None:
        problems.append(f"{path}: samples are missing, so the measurement is not used.")
        return None, Failure(
            cause=Cause.CRASHED, reason="The journal is damaged: samples are missing."
        )
    return measurement, None


def _parse_measurement(facts: Line, samples: list[Line]) -> Measurement | None:
    """None unless every sample that the end line counts is there."""
    deltas: list[int] = []
    device_ns: list[int] = []
    for line in samples:
        if len(line["deltas"]) != line["samples"]:
            return None
        deltas += line["deltas"]
        device_ns += line["device_ns"] or ()
    if len(deltas) != facts["samples"] or len(device_ns) not in (0, len(deltas)):
        return None
    values = _known_fields(Measurement, facts)
    values["ranks"] = tuple(RankSamples.from_dict(rank) for rank in facts.get("ranks", ()))
    values["stamps"] = tuple(accumulate(deltas, initial=facts["first"]))
    values["device_ns"] = tuple(device_ns) if device_ns else None
    values["blocks"] = tuple(Block(**_known_fields(Block, line)) for line in samples)
    return Measurement(**values)


def _known_fields(kind: type, values: Line) -> Line:
    """A later version may add fields; older readers skip them."""
    names = _field_names(kind)
    return {name: value for name, value in values.items() if name in names}


@cache
def _field_names(kind: Any) -> frozenset[str]:
    return frozenset(field.name for field in fields(kind))
