"""MLPerf Inference's LoadGen logs of single runs: the summary, or the detail log."""

from __future__ import annotations

import re
from typing import Any

from steptime.formats import Original, Row, Rows, Skipped
from steptime.formats._mlperf import described_system, locate_result
from steptime.formats._parse import first_match, number, parse_json, scale

TITLE = "MLPerf Inference LoadGen logs"
# The beginning of each line of the older detail log.
DETAIL = re.compile(r'^"pid": \d+, "tid": \d+, "ts": \d+ns : ', re.MULTILINE)
LINE = re.compile(r"^\s*([^:\n]+?)\s*:\s*(.+?)\s*$", re.MULTILINE)
LATENCY = re.compile(r"result_(\d+\.\d+)_percentile_latency_ns")
# The names that today's detail log has for those of the summary.
SUMMARY_NAMES = {
    "effective_scenario": "Scenario",
    "result_validity": "Result is",
    "result_samples_per_second": "Samples per second",
    "result_scheduled_samples_per_sec": "Scheduled samples per second",
    "result_tokens_per_second": "Tokens per second",
    "result_completed_samples_per_sec": "Completed samples per second",
    "effective_test_mode": "Mode",
    "result_completed_tokens_per_second": "Completed tokens per second",
}
# The first that a log has is its throughput.
SPEEDS = (
    "Tokens per second",
    "Completed tokens per second",
    "Samples per second",
    "Scheduled samples per second",
)
KEPT = ("SUT name", "Mode", "target_qps", "min_duration (ms)")
# What a log is shows in its first bytes.
HEAD = 4096
MARKS = (b"MLPerf Results Summary", b'"loadgen_version"', b"LoadgenVersionInfo")
# A file of one sentence.
SHORT = 400


def recognises(name: str, head: bytes) -> bool:
    if any(mark in head[:HEAD] for mark in MARKS):
        return True
    if len(head) < SHORT and b"errors encountered during test" in head:
        return True
    if name.rpartition("/")[2] != "accuracy.txt":
        return False
    return _accuracy_share(head.decode(errors="replace")) is not None


def read(file: Original) -> Rows:
    reason = _skip_reason(file)
    if reason:
        yield Skipped("file", reason)
        return
    values = _values(file.text)
    if "Scenario" not in values:
        reason = "names no scenario: the log is cut off, or the run did not end"
        yield Skipped("file", reason)
        return
    yield _read_run(file, values)


def _skip_reason(file: Original) -> str:
    """Why this file holds no run of its own; empty if it does."""
    head = file.text[:HEAD]
    if file.folders.name == "accuracy.txt":
        return "the accuracy of the performance run in the folder beside it"
    if "MLPerf Results Summary" in head:
        return ""
    if not DETAIL.search(head) and ":::MLLOG" not in head:
        return "a run that measured accuracy, not speed"
    if file.neighbour("mlperf_log_summary.txt"):
        return "the detail log of the run whose summary lies beside it"
    return ""


def _values(text: str) -> dict[str, str]:
    """By the summary's names. The first table counts; the later ones repeat some names."""
    if ":::MLLOG" in text[:HEAD]:
        return _logged_values(text)
    values: dict[str, str] = {}
    for key, value in LINE.findall(DETAIL.sub("", text)):
        values.setdefault(key, value)
    return values


def _logged_values(text: str) -> dict[str, str]:
    values = {}
    for line in text.splitlines():
        event = parse_json(line.partition(":::MLLOG ")[2]) if ":::MLLOG " in line else None
        if not isinstance(event, dict) or not isinstance(event.get("key"), str):
            continue
        key = event["key"]
        value = str(event.get("value"))
        if key in SUMMARY_NAMES:
            values[SUMMARY_NAMES[key]] = value
        elif match := LATENCY.fullmatch(key):
            values[f"{match[1]} percentile latency (ns)"] = value
    return values


def _read_run(file: Original, values: dict[str, str]) -> Row:
    path = locate_result(file)
    scenario = values["Scenario"].replace(" ", "")
    speed = next((name for name in SPEEDS if number(values.get(name)) is not None), "")
    metrics: dict[str, float | None] = {
        "throughput": number(values.get(speed)),
        "accuracy": _accuracy(file),
    }
    # Offline, all queries wait from the start: their latency is the length of the run.
    if scenario != "Offline":
        for percent in (50, 90, 99):
            latency = values.get(f"{percent}.00 percentile latency (ns)")
            metrics[f"latency_p{percent}"] = scale(latency, 1e-9)
    if scenario == "MultiStream" and not speed:
        # Version 0.5 counts streams.
        metrics["score"] = number(values.get("Samples per query"))
    dimensions: dict[str, Any] = path.dimensions | described_system(file, path)
    dimensions["phase"] = "inference"
    dimensions["scenario"] = scenario
    dimensions["unit"] = "tokens" if "oken" in speed else "samples"
    validity = values.get("Result is", "")
    failure = ""
    if validity != "VALID":
        failure = f"LoadGen calls the result {validity or 'nothing'}"
    more = {name: values.get(name) for name in KEPT}
    return file.run("run", dimensions, metrics, failure=failure, more=more)


def _accuracy(file: Original) -> float | None:
    neighbour = file.neighbour("../../accuracy/accuracy.txt")
    return _accuracy_share(neighbour.text) if neighbour else None


def _accuracy_share(text: str) -> float | None:
    """Of several measures the one that the rules compare."""
    percent = first_match(r"^(?:accuracy|mAP)\s*=\s*([\d.]+)\s*%", text)
    if percent:
        return scale(percent, 0.01)
    share = number(first_match(r"^Accuracy: mean = ([\d.]+)", text))
    if share is not None:
        return share
    return scale(first_match(r"'rouge1': ([\d.]+)", text), 0.01)
