"""MLPerf Tiny's table of results: microcontrollers, inferences per second and their energy."""

from __future__ import annotations

from typing import Any

from steptime.formats import Original, Row, Rows, Skipped
from steptime.formats._mlperf import accuracy, known_text
from steptime.formats._parse import clean_text, framework, json_objects, number, scale

TITLE = "MLPerf Tiny result tables"
# Kept in `more` as they are.
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


def read(file: Original) -> Rows:
    for location, row in json_objects(file.text):
        yield _read_row(file, location, row)


def _read_row(file: Original, location: str, row: dict[str, Any]) -> Row:
    speed = number(row.get("median_throughput"))
    if speed is None:
        return Skipped(location, f"no throughput: {row.get('median_throughput')!r}")
    round_name = clean_text(row.get("version"))
    division = clean_text(row.get("Division"))
    software = known_text(row.get("Inference Framework"))
    device = known_text(row.get("SoC Name")) or known_text(row.get("Processor(s) Name"))
    more = {name: clean_text(row.get(name)) for name in KEPT}
    more["benchmark"] = clean_text(row.get("Benchmark"))
    return file.run(
        location,
        {
            "model": clean_text(row.get("Model") or row.get("Benchmark")),
            "phase": "inference",
            "devices": 1,
            "nodes": 1,
            "submitter": clean_text(row.get("Submitter")),
            "server": clean_text(row.get("__System")),
            "unit": "samples",
            "suite": f"MLPerf Tiny {round_name} {division}".strip(),
            "device": device,
            "scenario": "SingleStream",
            "framework": framework(software),
            "software": software,
        },
        {
            "throughput": speed,
            "throughput_per_device": speed,
            "accuracy": accuracy(row.get("accuracy_Top-1")),
            "energy": scale(row.get("median_energy_cost"), 1e-6),
        },
        more=more,
    )
