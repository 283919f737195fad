"""MLPerf Inference's LoadGen logs of single runs: the summary, the detail log, and what the accuracy run found."""

from __future__ import annotations

import re
from typing import Any

from steptime.formats import Found, Original, Skipped
from steptime.formats._mlperf import described, placed
from steptime.formats._parse import matches, number, parsed, scaled

TITLE = "MLPerf Inference LoadGen logs"
DETAIL = re.compile(r'^"pid": \d+, "tid": \d+, "ts": \d+ns : ', re.MULTILINE)
LINE = re.compile(r"^\s*([^:\n]+?)\s*:\s*(.+?)\s*$", re.MULTILINE)
# The detail log of today has the summary's words under names of its own.
WORDS = {
    "effective_scenario": "Scenario", "result_validity": "Result is", "result_samples_per_second": "Samples per second",
    "result_scheduled_samples_per_sec": "Scheduled samples per second", "result_tokens_per_second": "Tokens per second",
    "result_completed_samples_per_sec": "Completed samples per second", "effective_test_mode": "Mode",
    "result_completed_tokens_per_second": "Completed tokens per second",
}  # fmt: skip
SPEEDS = (
    "Tokens per second",
    "Completed tokens per second",
    "Samples per second",
    "Scheduled samples per second",
)


def recognises(name: str, head: bytes) -> bool:
    if b"MLPerf Results Summary" in head[:4096] or b'"loadgen_version"' in head[:4096]:
        return True
    if b"LoadgenVersionInfo" in head[:4096] or (
        len(head) < 400 and b"errors encountered during test" in head
    ):
        return True
    return (
        name.rpartition("/")[2] == "accuracy.txt"
        and _reached(head.decode(errors="replace")) is not None
    )


def read(file: Original) -> Found:
    name = file.folders.name
    if name == "accuracy.txt" or "MLPerf Results Summary" not in file.text[:4096]:
        if name == "accuracy.txt":
            yield Skipped("file", "the accuracy of the performance run in the folder beside it")
            return
        if not DETAIL.search(file.text[:4096]) and ":::MLLOG" not in file.text[:4096]:
            yield Skipped("file", "a run that measured accuracy, not speed")
            return
        if file.neighbour("mlperf_log_summary.txt"):
            yield Skipped("file", "the detail log of the run whose summary lies beside it")
            return
    values = _values(file.text)
    if "Scenario" not in values:
        yield Skipped("file", "names no scenario: the log is cut off, or the run did not end")
        return
    yield _run(file, values)


def _values(text: str) -> dict[str, str]:
    """The first time that a word is said counts: the second table is about queries, the third about tokens."""
    if ":::MLLOG" in text[:4096]:
        return _logged(text)
    found: dict[str, str] = {}
    for key, value in LINE.findall(DETAIL.sub("", text)):
        found.setdefault(key, value)
    return found


def _logged(text: str) -> dict[str, str]:
    events = (
        parsed(line.split(":::MLLOG ", 1)[1]) for line in text.splitlines() if ":::MLLOG " in line
    )
    values = {
        e["key"]: str(e.get("value"))
        for e in events
        if isinstance(e, dict) and isinstance(e.get("key"), str)
    }
    latencies = re.compile(r"result_(\d+\.\d+)_percentile_latency_ns")
    found = {WORDS[key]: value for key, value in values.items() if key in WORDS}
    return found | {
        f"{m[1]} percentile latency (ns)": v
        for k, v in values.items()
        if (m := latencies.fullmatch(k))
    }


def _run(file: Original, values: dict[str, str]) -> Any:
    where, scenario = placed(file), values["Scenario"].replace(" ", "")
    speed = next((name for name in SPEEDS if number(values.get(name)) is not None), "")
    metrics: dict[str, float | None] = {
        "throughput": number(values.get(speed)),
        "accuracy": _accuracy(file),
    }
    if (
        scenario != "Offline"
    ):  # there all queries wait from the start: their latency is the run's length
        names = {
            f"latency_p{share}": f"{share}.00 percentile latency (ns)" for share in (50, 90, 99)
        }
        metrics |= {name: scaled(values.get(key), 1e-9) for name, key in names.items()}
    if scenario == "MultiStream" and not speed:
        metrics["score"] = number(values.get("Samples per query"))  # v0.5 counts streams
    validity = values.get("Result is", "")
    return file.run(
        "run",
        where.dimensions
        | {name: value for name, value in described(file, where).items() if value}
        | {
            "phase": "inference",
            "scenario": scenario,
            "unit": "tokens" if "oken" in speed else "samples",
        },
        metrics,
        failure="" if validity == "VALID" else f"LoadGen calls the result {validity or 'nothing'}",
        more={
            name: values.get(name)
            for name in ("SUT name", "Mode", "target_qps", "min_duration (ms)")
        },
    )


def _accuracy(file: Original) -> float | None:
    neighbour = file.neighbour("../../accuracy/accuracy.txt")
    return _reached(neighbour.text) if neighbour else None


def _reached(text: str) -> float | None:
    """As a share; of several measures the one that the rules compare."""
    percent = matches(r"^(?:accuracy|mAP)\s*=\s*([\d.]+)\s*%", text)
    if percent:
        return scaled(percent, 0.01)
    share = number(matches(r"^Accuracy: mean = ([\d.]+)", text))
    return share if share is not None else scaled(matches(r"'rouge1': ([\d.]+)", text), 0.01)
