"""MLPerf Tiny's table of results: microcontrollers, inferences per second and energy of one."""

from __future__ import annotations

from typing import Any

from steptime.formats import Found, Original, Row, Skipped
from steptime.formats._mlperf import accuracy, said
from steptime.formats._parse import framework, number, objects, scaled, spelled

TITLE = "MLPerf Tiny result tables"
KEPT = (
    "uid",
    "git_url",
    "Status",
    "Board Name",
    "accuracy_AUC",
    "Processor(s) Frequencies",
    "Quantization Method",
)


def recognises(name: str, head: bytes) -> bool:
    return head.lstrip()[:1] == b"[" and b'"median_throughput' in head


def read(file: Original) -> Found:
    for place, row in objects(file.text):
        yield _row(file, place, row)


def _row(file: Original, place: str, row: dict[str, Any]) -> Row:
    speed = number(row.get("median_throughput"))
    if speed is None:
        return Skipped(place, f"no throughput: {row.get('median_throughput')!r}")
    kept = {name: spelled(row.get(name)) for name in KEPT}
    return file.run(
        place,
        {
            "model": spelled(row.get("Model") or row.get("Benchmark")), "phase": "inference", "devices": 1, "nodes": 1,
            "submitter": spelled(row.get("Submitter")), "server": spelled(row.get("__System")), "unit": "samples",
            "suite": f"MLPerf Tiny {spelled(row.get('version'))} {spelled(row.get('Division'))}".strip(),
            "device": said(row.get("SoC Name")) or said(row.get("Processor(s) Name")), "scenario": "SingleStream",
            "framework": framework(said(row.get("Inference Framework"))),
            "software": said(row.get("Inference Framework")),
        },
        {
            "throughput": speed,
            "throughput_per_device": speed,
            "accuracy": accuracy(row.get("accuracy_Top-1")),
            "energy": scaled(row.get("median_energy_cost"), 1e-6),
        },
        more={**kept, "benchmark": spelled(row.get("Benchmark"))},
    )  # fmt: skip
