"""Records of PyTorch's benchmark database, version 3: one metric of one model each."""

from __future__ import annotations

from statistics import median
from typing import Any

from steptime.exchange import Found, Original, Row, Skipped
from steptime.exchange._words import number, objects, spelled

TITLE = "PyTorch benchmark records, version 3"
KNOWN = {
    "latency": ("step_time", 1.0), "latency(s)": ("step_time", 1.0), "latency(ms)": ("step_time", 1e-3),
    "avg_inference_latency(ms)": ("step_time", 1e-3), "throughput": ("throughput", 1.0),
    "token_per_sec": ("throughput", 1.0), "tokens_per_second": ("throughput", 1.0), "memory": ("memory", 1.0),
    "peak_inference_mem_usage(mb)": ("memory", 1e6), "accuracy": ("accuracy", 1.0),
}  # fmt: skip


def recognises(name: str, head: bytes) -> bool:
    records = b'"benchmark_values"' in head and b'"benchmark"' in head
    return records or (b'"repo"' in head and head.lstrip().startswith(b"[{}") and b'"workflow_id"' in head)


def read(file: Original) -> Found:
    for place, record in objects(file.text):
        yield _record(file, place, record)


def _record(file: Original, place: str, record: dict[str, Any]) -> Row:
    benchmark, model, metric = (_part(record, name) for name in ("benchmark", "model", "metric"))
    found = metric.get("benchmark_values")
    values = [value for word in (found if isinstance(found, list) else []) if (value := number(word)) is not None]
    if not values:
        return Skipped(place, "no values of a metric")
    name, factor = KNOWN.get(spelled(metric.get("name")).lower(), ("", 1.0))
    runners = record.get("runners")
    runner = runners[0] if isinstance(runners, list) and runners and isinstance(runners[0], dict) else {}
    extra = _part(benchmark, "extra_info")
    return file.run(
        place,
        {
            "model": spelled(model.get("name")), "phase": spelled(benchmark.get("mode")), "framework": "pytorch",
            "mode": spelled(model.get("backend")), "suite": spelled(benchmark.get("name")), "devices": 1,
            "precision": spelled(benchmark.get("dtype")), "device": spelled(runner.get("name") or extra.get("device")),
        },
        {name: factor * median(values)} if name else {},
        more={"metric": metric.get("name"), "values": values, "benchmark": extra, "runner": runner.get("type")},
    )  # fmt: skip


def _part(values: dict[str, Any], name: str) -> dict[str, Any]:
    part = values.get(name)
    return part if isinstance(part, dict) else {}
