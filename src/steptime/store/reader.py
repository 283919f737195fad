"""Read a journal back into an attempt, in whatever state its writer left it. Changes nothing."""

from __future__ import annotations

import json
from array import array
from dataclasses import fields
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from steptime.core import accuracy
from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.core.errors import SteptimeError
from steptime.core.measurement import Block, Measurement, RankSamples, RawSamples
from steptime.core.protocol import Protocol
from steptime.core.record import OUTPUT_LINES, Attempt, Failure
from steptime.core.record_schema import line_problem
from steptime.core.secrets import redact, redact_environment, redact_text
from steptime.store import checksums
from steptime.store.files import open_file, read_bytes
from steptime.store.journal import is_running
from steptime.store.versions import JOURNAL_SCHEMA, schema_problem

NO_END = "No end line: the process was killed or the machine went down."
# Of a log: its last lines are in the last bytes.
OUTPUT_BYTES = 65_536

Line = dict[str, Any]


class _Text(NamedTuple):
    """A line that is JSON."""

    number: int
    data: bytes
    values: Line


def read(path: Path, problems: list[str] | None = None) -> Attempt | None:
    """None: nothing is written yet, or nothing is readable; then `problems` says why."""
    if problems is None:
        problems = []
    try:
        return parse(read_bytes(path), path, problems)
    except FileNotFoundError:
        # A compactor has moved it into a part.
        return None
    except OSError as problem:
        problems.append(f"{path}: not readable ({problem.strerror}); it is left as it is.")
        return None


def parse(data: bytes, path: Path, problems: list[str]) -> Attempt | None:
    """Read a journal's text, wherever it is kept. `path` is opened only if the end is missing.

    A journal that the schema or its checksums do not allow is set aside: it has no attempt, and
    `problems` names it."""
    try:
        texts = _parse_lines(data, path, problems)
        # A torn last line is the beginning of a line, never a complete line with something after.
        if checksums.read_checksum(data.rpartition(b"\n")[2][:-1]):
            raise ValueError("its last line is damaged: checksum")
        if not texts:
            # In a part or a database no writer could add the first line later.
            if not path.exists():
                raise ValueError("nothing in it can be read")
            return None
        _check_lines(texts)
        return _parse_attempt(path, [text.values for text in texts], problems)
    # What the schema does not notice: a sum that exceeds 64 bits, a setting that does not exist.
    except (SteptimeError, ArithmeticError, LookupError, TypeError, ValueError) as problem:
        problems.append(f"{path}: set aside ({problem}); it is left as it is.")
        return None


def has_ended(path: Path) -> bool:
    if not path.exists():
        return False
    lines = _parse_lines(read_bytes(path), path, [])
    return any(line.values.get("line") == "end" for line in lines)


def last_output(log: Path) -> str:
    """The end of what a process printed."""
    if not log.exists():
        return ""
    with open_file(log) as file:
        file.seek(max(0, log.stat().st_size - OUTPUT_BYTES))
        text = file.read().decode(errors="replace")
    return "\n".join(text.splitlines()[-OUTPUT_LINES:])


def _parse_lines(data: bytes, path: Path, problems: list[str]) -> list[_Text]:
    """Complete lines only, up to the end of the attempt.

    A killed writer leaves a torn last line, which is no problem."""
    lines: list[_Text] = []
    damaged: list[int] = []
    texts = data.split(b"\n")
    for number, text in enumerate(texts, 1):
        if not text:
            continue
        try:
            # Decoded here: JSON's own reader would also take UTF-16.
            values = json.loads(text.decode())
        except (ValueError, RecursionError):
            values = None
        if isinstance(values, dict):
            lines.append(_Text(number, text, values))
            if values.get("line") == "end":
                break
        elif number < len(texts):
            damaged.append(number)
    if damaged:
        more = f" and {len(damaged) - 1} more" if len(damaged) > 1 else ""
        problems.append(f"{path}: skipped damaged line {damaged[0]}{more}.")
    return lines


def _check_lines(lines: list[_Text]) -> None:
    """Raise if a line is not as it was written, or holds what a record may not hold."""
    begin = lines[0].values
    if begin.get("line") != "begin":
        raise ValueError("the first line does not begin an attempt")
    # First: a later version may have other checksums and another schema.
    if problem := schema_problem(begin.get("schema"), JOURNAL_SCHEMA):
        raise ValueError(problem)
    texts = [line.data for line in lines]
    if checksums.has_checksums(texts):
        position = checksums.broken_line(texts)
        if position is not None:
            number = lines[position].number
            raise ValueError(f"line {number} is damaged or lines before it are missing: checksum")
    for line in lines:
        if problem := line_problem(line.values):
            raise ValueError(f"line {line.number}: {problem}")


def _first_line(lines: list[Line], name: str) -> Line | None:
    for line in lines:
        if line.get("line") == name:
            return line
    return None


def _parse_attempt(path: Path, lines: list[Line], problems: list[str]) -> Attempt | None:
    begin = lines[0]
    context = _first_line(lines, "context") or {}
    end = _first_line(lines, "end")
    if end is None:
        # Only journals in files of their own may go on.
        if not path.exists():
            raise ValueError("it has no end line")
        if is_running(path):
            return None
    case = Case.from_dict(begin["case"])
    findings = end.get("findings", {}) if end else {}
    measurement, failure = _outcome(path, end, lines, problems)
    # A measurement in low precision without its accuracy loss must not be ranked.
    if measurement and (lacking := accuracy.explain_missing_accuracy(case.precision, findings)):
        measurement = None
        failure = Failure(cause=Cause.CRASHED, reason=lacking)
    unused_samples = _unused_samples(end, lines) if failure else None
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
        unused_samples=unused_samples,
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


def _unused_samples(end: Line | None, lines: list[Line]) -> RawSamples | None:
    """What a failed attempt wrote: its end line, which says more about them, may be missing."""
    samples = [line for line in lines if line.get("line") == "sample"]
    facts = (end or {}).get("measurement") or {}
    host_ns, device_ns = _sample_times(samples)
    # With gaps nobody knows which samples these are.
    if not host_ns or len(host_ns) != facts.get("samples", len(host_ns)):
        return None
    return RawSamples(
        host_ns=array("q", host_ns),
        device_ns=array("q", device_ns) if len(device_ns) == len(host_ns) else None,
        group=facts.get("group"),
        cut=facts.get("cut"),
    )


def _sample_times(samples: list[Line]) -> tuple[list[int], list[int]]:
    """By the host's clock, and by the device's if it has one."""
    host_ns: list[int] = []
    device_ns: list[int] = []
    for line in samples:
        host_ns += line["deltas"]
        device_ns += line["device_ns"] or ()
    return host_ns, device_ns


def _parse_measurement(facts: Line, samples: list[Line]) -> Measurement | None:
    """None unless every sample that the end line counts is there."""
    if any(len(line["deltas"]) != line["samples"] for line in samples):
        return None
    deltas, device_ns = _sample_times(samples)
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
