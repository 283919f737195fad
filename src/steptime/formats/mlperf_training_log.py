"""MLPerf Training's logs of single runs: MLLOG (v0.7 and later), MLL (v0.6), MLPv0.5."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from statistics import median
from typing import Any, NamedTuple

from steptime.formats import Original, Rows, Skipped
from steptime.formats._mlperf import described_system, locate_result
from steptime.formats._parse import as_dict, integer, number, parse_json, software
from steptime.formats._writer import Page, has_accelerators

TITLE = "MLPerf Training logs"
# :::MLL 1541635765.4 run_start: {…}
MLL = re.compile(r":::MLL (\d+(?:\.\d+)?) (\w+): (\{.*)")
# :::MLPv0.5.0 resnet 1541635765.4 (train.py:12) run_start: …
MLP = re.compile(r":::MLP(v[\d.]+) (\w+) (\d+(?:\.\d+)?) \(([^)]*)\) (\w+)(?:: ?(.*))?")
# What these log as accuracy is a loss, or a distance: less is better.
LOSSES = {"llama2_70b_lora", "llama31_405b", "llama31_8b", "gpt3", "stable_diffusion", "flux1"}
# The units that its throughput may have.
SAMPLES = ("samples", "images", "sentences", "sequences", "")
# What a reader of the format assumes, or rounds: milliseconds, nodes, devices per node.
ASSUMED = ("unit", "started", "nodes", "devices", "time_to_accuracy")
KEPT = (
    "seed",
    "train_samples",
    "eval_samples",
    "gradient_accumulation_steps",
    "opt_base_learning_rate",
)
# Times beyond the year 5138 are damaged.
LATEST_SECONDS = 1e11
# Zero stands for events that a submitter added by hand.
UNKNOWN_MILLISECONDS = 1


class Event(NamedTuple):
    seconds: float
    key: str
    value: Any
    metadata: dict[str, Any]


def recognises(name: str, head: bytes) -> bool:
    is_log = b":::MLLOG " in head or b":::MLL " in head or b":::MLPv0." in head
    return is_log and b'"loadgen_' not in head


def read(file: Original) -> Rows:
    parsed = [_parse_event(line) for line in file.text.splitlines() if ":::ML" in line]
    events = [event for event in parsed if event is not None]
    if len(events) < len(parsed):
        yield Skipped("log", f"{len(parsed) - len(events)} lines that cannot be read")
    if not events:
        yield Skipped("log", "no event")
        return
    path = locate_result(file)
    first_values = {event.key: event.value for event in reversed(events)}
    model = str(first_values.get("submission_benchmark") or path.benchmark)
    dimensions = path.dimensions
    dimensions |= {
        "model": model,
        "phase": "training",
        "effective_batch": integer(first_values.get("global_batch_size")),
        "unit": "samples",
    }
    dimensions |= described_system(file, path)
    dimensions["optimizer"] = first_values.get("opt_name")
    more = {name: first_values.get(name) for name in KEPT}
    more["events"] = len(events)
    more["evaluations"] = _evaluations(events)
    yield file.run(
        "run",
        dimensions,
        _metrics(events, model),
        failure=_failure(events),
        started=_start_time(events),
        more=more,
    )


def _start_time(events: list[Event]) -> str:
    """Some submitters add events by hand, at the time zero."""
    for event in events:
        if event.seconds > 0:
            moment = datetime.fromtimestamp(event.seconds, UTC)
            return moment.isoformat(timespec="seconds")
    return ""


def _parse_event(line: str) -> Event | None:
    if ":::MLLOG " in line:
        values = parse_json(line.partition(":::MLLOG ")[2].strip())
        if not isinstance(values, dict):
            return None
        milliseconds = number(values.get("time_ms"))
        return _event(None if milliseconds is None else milliseconds * 1e-3, values)
    if match := MLL.search(line):
        values = parse_json(match[3])
        if not isinstance(values, dict):
            return None
        return _event(number(match[1]), {"key": match[2], **values})
    if match := MLP.search(line):
        value = parse_json(match[6]) if match[6] else None
        if value is None:
            value = match[6]
        return _event(number(match[3]), {"key": match[5], "value": value})
    return None


def _event(seconds: float | None, values: dict[str, Any]) -> Event | None:
    if seconds is None or not 0 <= seconds < LATEST_SECONDS:
        return None
    if not isinstance(values.get("key"), str):
        return None
    value = values.get("value")
    # A value may be nested in an object.
    if isinstance(value, dict) and "value" in value:
        value = value["value"]
    return Event(seconds, values["key"], value, as_dict(values.get("metadata")))


def _metrics(events: list[Event], model: str) -> dict[str, float | None]:
    """What was measured is kept also for a run that failed."""
    metrics: dict[str, float | None] = {}
    speeds = _speeds(events)
    if speeds:
        metrics["throughput"] = median(speeds)
    evaluations = _evaluations(events)
    if evaluations:
        metrics["loss" if model in LOSSES else "accuracy"] = evaluations[-1][1]
    starts = _events_of(events, "run_start")
    stops = _stops(events)
    if starts and stops and not _failure(events):
        metrics["time_to_accuracy"] = stops[0].seconds - starts[0].seconds
    return metrics


def _speeds(events: list[Event]) -> list[float]:
    speeds = []
    for event in _events_of(events, "tracked_stats"):
        speed = number(as_dict(event.value).get("throughput"))
        if speed is not None:
            speeds.append(speed)
    return speeds


def _failure(events: list[Event]) -> str:
    """Why the run has no time to accuracy; empty if it has one."""
    starts = _events_of(events, "run_start")
    stops = _stops(events)
    if not starts and not stops and _speeds(events):
        # A log of the speed alone.
        return ""
    if not starts:
        return "no run_start: the run ended before it began"
    if not stops:
        return "no run_stop: the run did not end"
    for event in stops:
        # Version 0.5 has the status in the value.
        status = event.metadata.get("status") or as_dict(event.value).get("status", "")
        if status:
            return "" if status == "success" else f"the run ended with the status {status}"
    return ""


def _events_of(events: list[Event], key: str) -> list[Event]:
    return [event for event in events if event.key == key]


def _stops(events: list[Event]) -> list[Event]:
    return _events_of(events, "run_stop") + _events_of(events, "run_final")


def _evaluations(events: list[Event]) -> list[tuple[float, float]]:
    """Seconds since the run began, and what was reached."""
    starts = _events_of(events, "run_start")
    begin = starts[0].seconds if starts else events[0].seconds
    evaluations = []
    for event in _events_of(events, "eval_accuracy"):
        value = event.value
        reached = number(value.get("value") if isinstance(value, dict) else value)
        if reached is not None:
            evaluations.append((round(event.seconds - begin, 3), reached))
    return evaluations


def write(rows: Sequence[dict[str, Any]]) -> Iterator[Page | Skipped]:
    """A log for each row where MLPerf's rules want it, and the system's description beside it.

    Throughput is that of all devices, in samples per second. A row without a time to accuracy
    becomes a log of its speed alone."""
    for position, row in enumerate(rows):
        events = list(_result_events(row))
        if row.get("phase") != "training" or not events:
            yield Skipped(
                row["id"],
                "no training with a time to accuracy, or with a speed in samples per second",
            )
            continue
        submitter = _folder_name(row.get("submitter"))
        system = f"{_folder_name(row.get('server'))}-{position}"
        folder = f"{submitter}/results/{system}/{_folder_name(row.get('model'))}"
        lines = [*_setting_lines(row), *events]
        yield Page(f"{folder}/result_0.txt", "".join(lines).encode(), (row["id"],))
        description = json.dumps(_description(row), indent=1, ensure_ascii=False)
        yield Page(f"{submitter}/systems/{system}.json", description.encode())


def _folder_name(name: Any) -> str:
    return re.sub(r"[^\w.-]+", "_", str(name or "unknown")) or "unknown"


def _line(
    key: str,
    value: Any,
    milliseconds: int,
    event_type: str = "POINT_IN_TIME",
    metadata: dict[str, Any] | None = None,
) -> str:
    event = {
        "namespace": "",
        "time_ms": milliseconds,
        "event_type": event_type,
        "key": key,
        "value": value,
        "metadata": metadata or {},
    }
    return f":::MLLOG {json.dumps(event, ensure_ascii=False)}\n"


def _setting_lines(row: dict[str, Any]) -> Iterator[str]:
    settings = {
        "submission_benchmark": row.get("model"),
        "submission_org": row.get("submitter"),
        "global_batch_size": integer(row.get("effective_batch")),
        "opt_name": row.get("optimizer"),
    }
    for key, value in settings.items():
        if value:
            yield _line(key, value, _start_milliseconds(row))


def _result_events(row: dict[str, Any]) -> Iterator[str]:
    begin = _start_milliseconds(row)
    seconds = row.get("time_to_accuracy")
    speed = row.get("throughput")
    if speed and (row.get("unit") or "") in SAMPLES:
        yield _line("tracked_stats", {"throughput": speed}, begin)
    if not seconds:
        return
    end = begin + round(1000 * seconds)
    yield _line("run_start", None, begin, "INTERVAL_START")
    evaluations = (row.get("more") or {}).get("evaluations") or []
    for after, value in evaluations:
        yield _line("eval_accuracy", value, begin + round(1000 * after))
    last = row.get("loss" if row.get("model") in LOSSES else "accuracy")
    if not evaluations and last is not None:
        yield _line("eval_accuracy", last, end)
    yield _line("run_stop", None, end, "INTERVAL_END", {"status": "success"})


def _start_milliseconds(row: dict[str, Any]) -> int:
    try:
        moment = datetime.fromisoformat(row.get("started") or "")
    except ValueError:
        return UNKNOWN_MILLISECONDS
    return round(1000 * moment.replace(tzinfo=moment.tzinfo or UTC).timestamp())


def _description(row: dict[str, Any]) -> dict[str, Any]:
    nodes = integer(row.get("nodes")) or 1
    devices = integer(row.get("devices")) or 1
    hardware = row.get("hardware") or {}
    description = {
        "submitter": row.get("submitter") or "",
        "system_name": row.get("server") or "",
        "number_of_nodes": nodes,
        "host_processor_model_name": hardware.get("processor") or "",
        "host_processors_per_node": hardware.get("processors_per_node"),
        "accelerators_per_node": 0,
        "accelerator_model_name": "",
        "accelerator_interconnect": row.get("interconnect") or "",
        "framework": software(row),
    }
    if has_accelerators(row):
        description["accelerators_per_node"] = devices // nodes or 1
        description["accelerator_model_name"] = row.get("device") or ""
    else:
        description["host_processor_model_name"] = row.get("device") or ""
    return {name: value for name, value in description.items() if value is not None}
