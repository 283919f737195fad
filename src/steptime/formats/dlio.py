"""DLIO's summary of an ingest run. Its other files are kept, and have no rows."""

from __future__ import annotations

from steptime.formats import Original, Rows, Skipped
from steptime.formats._parse import (
    as_dict,
    clean_text,
    integer,
    number,
    parse_json,
    scale,
)

TITLE = "DLIO outputs"


def recognises(name: str, head: bytes) -> bool:
    if head.lstrip()[:1] != b"{":
        return False
    summary = b'"num_accelerators"' in head and b"_au_" in head
    steps = b'"load"' in head and b'"block1"' in head
    epochs = b'"block1"' in head and b'"duration"' in head and b'"start"' in head
    return summary or steps or epochs or b'"sysstat"' in head[:200]


def read(file: Original) -> Rows:
    values = as_dict(parse_json(file.text))
    metric = values.get("metric")
    if not isinstance(metric, dict):
        yield Skipped(
            "file", "times of single steps or of the disk: the run's result is its summary"
        )
        return
    devices = integer(values.get("num_accelerators"))
    for phase in ("train", "eval"):
        speed = number(metric.get(f"{phase}_throughput_mean_samples_per_second"))
        if speed is None:
            continue
        yield file.run(
            phase,
            {
                "phase": "ingest",
                "devices": devices,
                "server": clean_text(values.get("hostname")),
                "unit": "samples",
                "suite": "DLIO",
                "mode": phase,
            },
            {
                "throughput": speed,
                "throughput_per_device": speed / devices if devices else None,
                "bandwidth": scale(metric.get(f"{phase}_io_mean_MB_per_second"), 1e6),
                "utilisation": scale(metric.get(f"{phase}_au_mean_percentage"), 0.01),
            },
            started=clean_text(values.get("start")),
            more={
                "epochs": integer(values.get("epochs")),
                "ended": clean_text(values.get("end")),
            },
        )
