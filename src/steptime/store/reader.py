"""A journal back into an attempt, whatever state its writer left it in. Changes nothing on the disk."""

from __future__ import annotations

import json
from dataclasses import fields
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

from steptime.core import accuracy
from steptime.core.case import Case
from steptime.core.errors import SteptimeError
from steptime.core.measurement import Block, Measurement, RankSamples
from steptime.core.protocol import Protocol
from steptime.core.record import OUTPUT_LINES, Attempt, Failure
from steptime.store.journal import SCHEMA, is_running

NO_END = "No end line: the process was killed or the machine went down."
OUTPUT_BYTES = 65_536


def read(path: Path, problems: list[str] | None = None) -> Attempt | None:
    """None: nothing to keep yet, or nothing readable; then `problems` says which file and why."""
    problems = [] if problems is None else problems
    try:
        return parse(path.read_bytes(), path, problems)
    except FileNotFoundError:
        return None  # meanwhile a compactor moved it into a part
    except OSError as problem:
        problems.append(f"{path}: not readable ({problem.strerror}); it is left as it is.")
        return None


def parse(data: bytes, path: Path, problems: list[str]) -> Attempt | None:
    """What a journal says, wherever its text is kept. Only one without an end has its file looked at."""
    try:
        lines = _lines(data, path, problems)
        return _attempt(path, lines, problems) if lines else None
    except (SteptimeError, KeyError, TypeError, ValueError, AttributeError) as problem:
        problems.append(
            f"{path}: not readable ({type(problem).__name__}: {problem}); it is left as it is."
        )
        return None


def has_ended(path: Path) -> bool:
    return path.exists() and any(
        line.get("line") == "end" for line in _lines(path.read_bytes(), path, [])
    )


def last_output(log: Path) -> str:
    """The end of what a process printed."""
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - OUTPUT_BYTES))
        text = file.read().decode(errors="replace")
    return "\n".join(text.splitlines()[-OUTPUT_LINES:])


def _lines(data: bytes, path: Path, problems: list[str]) -> list[dict[str, Any]]:
    """Whole lines only. A torn last one is how a killed writer ends, so it is no problem."""
    found, damaged = [], []
    texts = data.split(b"\n")
    for number, text in enumerate(texts, 1):
        try:
            value = json.loads(text) if text else None
        except ValueError:
            value = None
            if number < len(texts):
                damaged.append(number)
        if isinstance(value, dict):
            found.append(value)
    if damaged:
        more = f" and {len(damaged) - 1} more are" if len(damaged) > 1 else " is"
        problems.append(f"{path}: line {damaged[0]}{more} damaged and passed over.")
    return found


def _attempt(path: Path, lines: list[dict[str, Any]], problems: list[str]) -> Attempt | None:
    begin = lines[0]
    if begin.get("line") != "begin":
        raise ValueError("the first line does not begin an attempt")
    if begin["schema"] != SCHEMA:
        raise ValueError(
            f"written as {begin['schema']!r}, this version reads {SCHEMA!r}: use a newer steptime"
        )
    context = next((line for line in lines if line.get("line") == "context"), {})
    end = next((line for line in lines if line.get("line") == "end"), None)
    if end is None and is_running(path):
        return None
    measurement, failure = _outcome(path, end, lines, problems)
    case, findings = Case.from_dict(begin["case"]), end.get("findings", {}) if end else {}
    if measurement and (lacking := accuracy.lacking(case.precision, findings)):
        measurement, failure = None, Failure(cause="crashed", reason=lacking)
    return Attempt(
        **{
            name: begin[name]
            for name in ("id", "session", "plan", "process", "environment", "pair", "started")
        },
        case=case,
        protocol=Protocol.from_dict(begin["protocol"]),
        **{name: context.get(name, {}) for name in ("machine", "software", "network")},
        task=begin.get("task", "measure"),
        ended=end["ended"] if end else "",
        findings=findings,
        measurement=measurement,
        failure=failure,
    )


def _outcome(
    path: Path, end: dict[str, Any] | None, lines: list[dict[str, Any]], problems: list[str]
) -> tuple[Measurement | None, Failure | None]:
    if end is None:
        return None, Failure(
            cause="crashed", reason=NO_END, output=last_output(path.with_suffix(".log"))
        )
    if end["failure"] is not None:
        return None, Failure(**_known(Failure, end["failure"]))
    if end["measurement"] is None:
        return None, None
    measurement = _measurement(
        end["measurement"], [line for line in lines if line.get("line") == "sample"]
    )
    if measurement is None:
        problems.append(f"{path}: samples are missing, so the measurement is not used.")
        return None, Failure(cause="crashed", reason="The journal is damaged: samples are missing.")
    return measurement, None


def _measurement(rest: dict[str, Any], samples: list[dict[str, Any]]) -> Measurement | None:
    """None unless every sample that the end line counts is there."""
    deltas = [delta for line in samples for delta in line["deltas"]]
    by_device = [value for line in samples for value in line["device_ns"] or ()]
    whole = (
        all(len(line["deltas"]) == line["samples"] for line in samples)
        and len(deltas) == rest["samples"]
    )
    if not whole or len(by_device) not in (0, len(deltas)):
        return None
    return Measurement(
        **{
            **_known(Measurement, rest),
            "ranks": tuple(map(RankSamples.from_dict, rest.get("ranks", ()))),
        },
        stamps=tuple(accumulate(deltas, initial=rest["first"])),
        device_ns=tuple(by_device) if by_device else None,
        blocks=tuple(Block(**_known(Block, line)) for line in samples),
    )


def _known(kind: type, values: dict[str, Any]) -> dict[str, Any]:
    """A later version may add fields; old readers pass over them."""
    names = _names(kind)
    return {name: value for name, value in values.items() if name in names}


@cache
def _names(kind: Any) -> frozenset[str]:
    return frozenset(field.name for field in fields(kind))
