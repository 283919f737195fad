"""MLPerf Training's logs of single runs: MLLOG (v0.7 and later), MLL (v0.6), MLPv0.5."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from statistics import median
from typing import Any

from steptime.formats import Found, Original, Skipped
from steptime.formats._mlperf import described, placed
from steptime.formats._parse import number, parsed, scaled, software, whole
from steptime.formats._writer import Page

TITLE = "MLPerf Training logs"
MLL = re.compile(r":::MLL (\d+(?:\.\d+)?) (\w+): (\{.*)")
MLP = re.compile(r":::MLP(v[\d.]+) (\w+) (\d+(?:\.\d+)?) \(([^)]*)\) (\w+)(?:: ?(.*))?")
# What these log as accuracy is a loss, or a distance: less is better.
LOSSES = {"llama2_70b_lora", "llama31_405b", "llama31_8b", "gpt3", "stable_diffusion", "flux1"}
SAMPLES = ("samples", "images", "sentences", "sequences", "")  # what its throughput counts
ASSUMED = (
    "unit",
    "started",
    "nodes",
    "devices",
    "time_to_accuracy",
)  # whole milliseconds, nodes and devices of each
KEPT = (
    "seed",
    "train_samples",
    "eval_samples",
    "gradient_accumulation_steps",
    "opt_base_learning_rate",
)
Event = tuple[float, str, Any, dict[str, Any]]  # seconds, key, value, metadata


def recognises(name: str, head: bytes) -> bool:
    logged = b":::MLLOG " in head or b":::MLL " in head or b":::MLPv0." in head
    return logged and b'"loadgen_' not in head


def read(file: Original) -> Found:
    events, damaged = [], 0
    for line in file.text.splitlines():
        if ":::ML" in line:
            event = _event(line)
            damaged += event is None
            events += [event] if event else []
    if damaged:
        yield Skipped("log", f"{damaged} lines that cannot be read")
    if not events:
        yield Skipped("log", "no event")
        return
    where, first = placed(file), {key: value for _, key, value, _ in reversed(events)}
    model = str(first.get("submission_benchmark") or where.benchmark)
    batch = whole(first.get("global_batch_size"))
    dimensions = where.dimensions | {
        "model": model,
        "phase": "training",
        "effective_batch": batch,
        "unit": "samples",
    }
    failure, metrics = _outcome(events, model)
    yield file.run(
        "run",
        dimensions
        | _known(described(file, where))
        | {"optimizer": first.get("opt_name"), "status": None},
        metrics,
        failure=failure,
        started=_started(events),
        more={name: first.get(name) for name in KEPT}
        | {"events": len(events), "evaluations": _evaluations(events)},
    )


def _started(events: list[Event]) -> str:
    """Some submitters add events by hand, at the time zero."""
    first = next((event[0] for event in events if event[0] > 0), 0.0)
    return datetime.fromtimestamp(first, UTC).isoformat(timespec="seconds") if first else ""


def _known(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}


def _event(line: str) -> Event | None:
    if ":::MLLOG " in line:
        values = parsed(line.split(":::MLLOG ", 1)[1].strip())
        return (
            _logged(number(values.get("time_ms")), 1e-3, values)
            if isinstance(values, dict)
            else None
        )
    if found := MLL.search(line):
        values = parsed(found[3])
        return (
            _logged(number(found[1]), 1.0, {"key": found[2], **values})
            if isinstance(values, dict)
            else None
        )
    if found := MLP.search(line):
        value = parsed(found[6]) if found[6] else None
        return _logged(
            number(found[3]),
            1.0,
            {"key": found[5], "value": value if value is not None else found[6]},
        )
    return None


def _logged(time: float | None, unit: float, values: dict[str, Any]) -> Event | None:
    if time is None or not 0 <= time * unit < 1e11 or not isinstance(values.get("key"), str):
        return None
    metadata, value = values.get("metadata"), values.get("value")
    if isinstance(value, dict) and "value" in value:
        value = value["value"]
    return time * unit, values["key"], value, metadata if isinstance(metadata, dict) else {}


def _outcome(events: list[Event], model: str) -> tuple[str, dict[str, float | None]]:
    """What was measured is kept also of a run that failed."""
    starts, stops = _of(events, ("run_start",)), _of(events, ("run_stop", "run_final"))
    evaluations = [value for _, value in _evaluations(events)]
    speeds = [
        number(e[2].get("throughput"))
        for e in events
        if e[1] == "tracked_stats" and isinstance(e[2], dict)
    ]
    known = [speed for speed in speeds if speed is not None]
    metrics: dict[str, float | None] = {"throughput": median(known) if known else None}
    if evaluations:
        metrics["loss" if model in LOSSES else "accuracy"] = evaluations[-1]
    if not starts and not stops and known:
        return "", metrics  # a log of the speed alone
    if not starts:
        return "no run_start: the run ended before it began", metrics
    if not stops:
        return "no run_stop: the run did not end", metrics
    status = next(
        (e[3].get("status") or _status(e[2]) for e in stops if e[3].get("status") or _status(e[2])),
        "",
    )
    if status not in ("success", ""):
        return f"the run ended with the status {status}", metrics
    return "", metrics | {"time_to_accuracy": scaled(stops[0][0] - starts[0][0], 1.0)}


def _status(value: Any) -> str:
    """v0.5 has it in the value of run_stop."""
    return str(value.get("status", "")) if isinstance(value, dict) else ""


def _of(events: list[Event], keys: tuple[str, ...]) -> list[Event]:
    return sorted(
        (event for event in events if event[1] in keys), key=lambda event: keys.index(event[1])
    )


def _evaluations(events: list[Event]) -> list[tuple[float, float]]:
    """Seconds since the run began, and what was reached."""
    begin = next((event[0] for event in events if event[1] == "run_start"), events[0][0])
    return list(_reached(events, begin))


def _reached(events: list[Event], begin: float) -> Iterator[tuple[float, float]]:
    for time, key, value, _ in events:
        reached = (
            number(value.get("value") if isinstance(value, dict) else value)
            if key == "eval_accuracy"
            else None
        )
        if reached is not None:
            yield round(time - begin, 3), reached


def write(rows: Sequence[dict[str, Any]]) -> Iterator[Page | Skipped]:
    """A log for each row where MLPerf's rules want it, with the system's description beside. Throughput is of all
    devices together, in samples per second; a row without a time to accuracy becomes a log of its speed alone."""
    for number_of_row, row in enumerate(rows):
        events = list(_events(row))
        if row.get("phase") != "training" or not events:
            yield Skipped(
                row["id"],
                "no training with a time to accuracy, or with a speed in samples per second",
            )
            continue
        org, system = (_folder(row.get(name)) for name in ("submitter", "server"))
        folder = f"{org}/results/{system}-{number_of_row}/{_folder(row.get('model'))}"
        lines = [_line(key, value, **rest) for key, value, rest in (*_about(row), *events)]
        yield Page(f"{folder}/result_0.txt", "".join(lines).encode(), (row["id"],))
        description = json.dumps(_system(row), indent=1, ensure_ascii=False)
        yield Page(f"{org}/systems/{system}-{number_of_row}.json", description.encode())


def _folder(name: Any) -> str:
    return re.sub(r"[^\w.-]+", "_", str(name or "unknown")) or "unknown"


def _line(key: str, value: Any, **rest: Any) -> str:
    event = {
        "namespace": "",
        "time_ms": 0,
        "event_type": "POINT_IN_TIME",
        "key": key,
        "value": value,
        "metadata": {},
    }
    return f":::MLLOG {json.dumps({**event, **rest}, ensure_ascii=False)}\n"


Told = tuple[str, Any, dict[str, Any]]  # key, value, and what is unusual about the event


def _about(row: dict[str, Any]) -> Iterator[Told]:
    at = {"time_ms": _milliseconds(row)}
    told = {"submission_benchmark": row.get("model"), "submission_org": row.get("submitter")}
    told |= {
        "global_batch_size": whole(row.get("effective_batch")),
        "opt_name": row.get("optimizer"),
    }
    yield from ((key, value, at) for key, value in told.items() if value)


def _events(row: dict[str, Any]) -> Iterator[Told]:
    begin, seconds = _milliseconds(row), row.get("time_to_accuracy")
    speed = row.get("throughput") if (row.get("unit") or "") in SAMPLES else None
    if speed:
        yield "tracked_stats", {"throughput": speed}, {"time_ms": begin}
    if not seconds:
        return
    end = begin + round(1000 * seconds)
    yield "run_start", None, {"time_ms": begin, "event_type": "INTERVAL_START"}
    reached = (row.get("more") or {}).get("evaluations") or []
    for after, value in reached:
        yield "eval_accuracy", value, {"time_ms": begin + round(1000 * after)}
    last = row.get("loss" if row.get("model") in LOSSES else "accuracy")
    if not reached and last is not None:
        yield "eval_accuracy", last, {"time_ms": end}
    yield (
        "run_stop",
        None,
        {"time_ms": end, "event_type": "INTERVAL_END", "metadata": {"status": "success"}},
    )


def _milliseconds(row: dict[str, Any]) -> int:
    try:
        moment = datetime.fromisoformat(row.get("started") or "")
    except ValueError:
        return 1  # zero stands for events that somebody added by hand
    return round(1000 * moment.replace(tzinfo=moment.tzinfo or UTC).timestamp())


def _system(row: dict[str, Any]) -> dict[str, Any]:
    nodes = whole(row.get("nodes")) or 1
    return {
        "submitter": row.get("submitter") or "", "system_name": row.get("server") or "", "number_of_nodes": nodes,
        "accelerators_per_node": (whole(row.get("devices")) or 1) // nodes or 1,
        "accelerator_model_name": row.get("device") or "", "accelerator_interconnect": row.get("interconnect") or "",
        "framework": software(row),
    }  # fmt: skip
