"""One run by itself: its numbers with their doubts, its steps over time, where it comes from, how to repeat it."""

from __future__ import annotations

import shlex
from dataclasses import fields
from itertools import pairwise
from typing import Any

from fastapi.responses import HTMLResponse

from steptime.analysis.result import Result, result
from steptime.core.case import Case
from steptime.core.foreign import ForeignRun
from steptime.core.measurement import Measurement
from steptime.core.record import Record
from steptime.guide.catalogue import METRICS
from steptime.guide.chart import PALETTE, SCHEMA
from steptime.guide.desk import Desk
from steptime.guide.query import Query

MOST_STEPS = 4000  # of a strip: more are thinned evenly
NOT_MEASURED = {
    "Operators and timeline": "not measured yet",
    "Memory by class": "not measured yet",
    "Power and clocks over time": "told on machines with an NVIDIA GPU",
}


def own_page(desk: Desk, record: Record) -> HTMLResponse:
    numbers = result(record) if record.measurements else None
    return desk.page(
        "run.html", here="/runs", record=record, numbers=numbers, command=command(record.case),
        headline=numbers.headline if numbers else f"{record.status}: {record.failures[-1].reason}",
        strip=strip(record) if numbers else None, histogram=histogram(record) if numbers else None,
        details=_details(record, numbers), history=history(record.case), missing=NOT_MEASURED,
    )  # fmt: skip


def foreign_page(desk: Desk, run: ForeignRun) -> HTMLResponse:
    told = {METRICS[name].axis if name in METRICS else name: value for name, value in run.metrics.items()}
    return desk.page("foreign.html", here="/runs", run=run, metrics_told=told)


def command(case: Case) -> str:
    """What measures this again."""
    changed = [(f.name, getattr(case, f.name)) for f in fields(case) if getattr(case, f.name) != f.default]
    words = [f"--set {shlex.quote(f'{name}={value}')}" for name, value in changed]
    return " ".join(["steptime run", *words])


def history(case: Case) -> str:
    """Where the same configuration's past is shown."""
    same = {"model": case.workload, "phase": case.phase, "framework": case.framework, "mode": case.mode}
    same |= {"precision": case.precision, "replica_batch": str(case.batch_size), "device": case.device}
    return Query(y="step_time", where=tuple((name, (value,)) for name, value in same.items())).to_url()


def strip(record: Record) -> dict[str, Any]:
    """Every step's time, process by process, the warm-up in grey."""
    values = []
    for number, measurement in enumerate(record.measurements):
        times = _milliseconds(measurement)
        thin = max(1, len(times) * len(record.measurements) // MOST_STEPS)
        for place in range(0, len(times), thin):
            part = "warm-up" if place < measurement.cut else "measured"
            values.append({"step": place, "ms": times[place], "process": number, "part": part})
    scale = {"domain": ["measured", "warm-up"], "range": [PALETTE[0], "#999999"]}
    return {
        "$schema": SCHEMA, "data": {"values": values}, "mark": {"type": "point", "filled": True, "size": 10},
        "encoding": {
            "x": {"field": "step", "type": "quantitative", "title": "Sample"},
            "y": {"field": "ms", "type": "quantitative", "title": "Step, ms", "scale": {"zero": False}},
            "color": {"field": "part", "type": "nominal", "title": None, "scale": scale},
            "facet": {"field": "process", "type": "nominal", "columns": 3, "title": "Process"},
        },
        "width": 240, "height": 120,
    }  # fmt: skip


def histogram(record: Record) -> dict[str, Any]:
    kept = [time for one in record.measurements for time in _milliseconds(one)[one.cut :]]
    thin = max(1, len(kept) // MOST_STEPS)
    axis = {"field": "ms", "bin": {"maxbins": 60}, "title": "Step, ms"}
    return {
        "$schema": SCHEMA, "data": {"values": [{"ms": time} for time in kept[::thin]]}, "mark": "bar",
        "encoding": {"x": axis, "y": {"aggregate": "count", "title": "Samples"}}, "width": 560, "height": 160,
    }  # fmt: skip


def _milliseconds(measurement: Measurement) -> list[float]:
    source = measurement.device_ns or [b - a for a, b in pairwise(measurement.stamps)]
    return [value / measurement.group / 1e6 for value in source]


def _details(record: Record, numbers: Result | None) -> dict[str, dict[str, Any]]:
    last = record.last
    found = {"Configuration": record.case.to_dict(), "Software": last.software, "Machine": last.machine}
    found |= {"Work": last.network, "Environment": last.environment}
    if numbers is not None:
        facts = {key: value for key, value in numbers.facts.items() if value is not None}
        found = {"Memory": numbers.memory_bytes, "Start-up, seconds": numbers.start_seconds, "Facts": facts, **found}
    if accuracy := last.findings.get("accuracy"):
        found = {"What the precision costs": accuracy, **found}
    return found
