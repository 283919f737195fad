"""Records of PyTorch's benchmark database, version 3: one metric of one model each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from steptime.formats import Found, Original, Row, Skipped
from steptime.formats._parse import number, objects, spelled
from steptime.formats._writer import Page, extra, extras
from steptime.index.catalogue import METRICS

TITLE = "PyTorch benchmark records, version 3"
KNOWN = {
    "latency": ("step_time", 1.0), "latency(s)": ("step_time", 1.0), "latency(ms)": ("step_time", 1e-3),
    "avg_inference_latency(ms)": ("step_time", 1e-3), "throughput": ("throughput", 1.0),
    "token_per_sec": ("throughput", 1.0), "tokens_per_second": ("throughput", 1.0), "memory": ("memory", 1.0),
    "peak_inference_mem_usage(mb)": ("memory", 1e6), "accuracy": ("accuracy", 1.0),
}  # fmt: skip


WRITTEN = {"step_time": "latency(s)"}  # others by their own names
HELD = ("model", "phase", "mode", "suite", "precision", "device")


def recognises(name: str, head: bytes) -> bool:
    records = b'"benchmark_values"' in head and b'"benchmark"' in head
    return records or (
        b'"repo"' in head and head.lstrip().startswith(b"[{}") and b'"workflow_id"' in head
    )


def read(file: Original) -> Found:
    for place, record in objects(file.text):
        yield _record(file, place, record)


def _record(file: Original, place: str, record: dict[str, Any]) -> Row:
    benchmark, model, metric = (_part(record, name) for name in ("benchmark", "model", "metric"))
    found = metric.get("benchmark_values")
    values = [
        value
        for word in (found if isinstance(found, list) else [])
        if (value := number(word)) is not None
    ]
    if not values:
        return Skipped(place, "no values of a metric")
    word = spelled(metric.get("name")).lower()
    name, factor = KNOWN.get(word, (word if word in METRICS else "", 1.0))
    runners = record.get("runners")
    runner = (
        runners[0] if isinstance(runners, list) and runners and isinstance(runners[0], dict) else {}
    )
    told = _part(benchmark, "extra_info")
    own_dimensions, own_metrics = extra(told)
    ends = {
        f"{name}_{end}": number(_part(metric, "extra_info").get(end)) for end in ("low", "high")
    }
    return file.run(
        place,
        {
            "model": spelled(model.get("name")), "phase": spelled(benchmark.get("mode")), "framework": "pytorch",
            "mode": spelled(model.get("backend")), "suite": spelled(benchmark.get("name")), "devices": 1,
            "precision": spelled(benchmark.get("dtype")), "device": spelled(runner.get("name") or told.get("device")),
            **own_dimensions,
        },
        {name: factor * median(values), **ends, **own_metrics} if name else {},
        started=spelled(told.get("started")),
        more={"metric": metric.get("name"), "values": values, "benchmark": told, "runner": runner.get("type")},
    )  # fmt: skip


def _part(values: dict[str, Any], name: str) -> dict[str, Any]:
    part = values.get(name)
    return part if isinstance(part, dict) else {}


def write(rows: Sequence[dict[str, Any]]) -> Iterator[Page | Skipped]:
    """A list of records, one for each metric of each row. Latency in seconds; `throughput` is of all devices together,
    in the unit that `extra_info` names. Its values are texts, because the database's column is a map of texts."""
    records: list[dict[str, Any]] = []
    kept: list[str] = []
    for row in rows:
        told = [name for name in METRICS if row.get(name) is not None]
        if not told:
            yield Skipped(row["id"], "a record is of one metric; this row has none")
        records += [_written(row, name) for name in told]
        kept += [row["id"]] * len(told)
    if records:
        yield Page(
            "pytorch-v3.json",
            json.dumps(records, indent=1, ensure_ascii=False).encode(),
            tuple(kept),
        )


def _written(row: dict[str, Any], name: str) -> dict[str, Any]:
    ends = {
        end: str(value)
        for end in ("low", "high")
        if (value := row.get(f"{name}_{end}")) is not None
    }
    rest = extras(
        row, (*HELD, *(f"{metric}{end}" for metric in METRICS for end in ("", "_low", "_high")))
    )
    started = {"started": row["started"]} if row.get("started") else {}
    return {
        "benchmark": {
            "name": row.get("suite") or "steptime", "mode": row.get("phase") or "", "dtype": row.get("precision") or "",
            "extra_info": {**started, **{key: str(value) for key, value in rest.items()}},
        },
        "model": {"name": row.get("model") or "", "backend": row.get("mode") or ""},
        "metric": {"name": WRITTEN.get(name, name), "benchmark_values": [row[name]], "extra_info": ends},
        "runners": [{"name": row.get("device") or ""}],
    }  # fmt: skip
