"""DLIO's summary of an ingest run; its other files are kept and used by it."""

from __future__ import annotations

from steptime.formats import Found, Original, Skipped
from steptime.formats._parse import number, parsed, scaled, spelled, whole

TITLE = "DLIO outputs"


def recognises(name: str, head: bytes) -> bool:
    if head.lstrip()[:1] != b"{":
        return False
    summary = b'"num_accelerators"' in head and b"_au_" in head
    steps = b'"load"' in head and b'"block1"' in head
    epochs = b'"block1"' in head and b'"duration"' in head and b'"start"' in head
    return summary or steps or epochs or b'"sysstat"' in head[:200]


def read(file: Original) -> Found:
    values = parsed(file.text)
    metric = values.get("metric") if isinstance(values, dict) else None
    if not isinstance(values, dict) or not isinstance(metric, dict):
        yield Skipped(
            "file", "times of single steps or of the disk: the run's result is its summary"
        )
        return
    for phase in ("train", "eval"):
        speed = number(metric.get(f"{phase}_throughput_mean_samples_per_second"))
        if speed is None:
            continue
        devices = whole(values.get("num_accelerators"))
        yield file.run(
            phase,
            {
                "phase": "ingest", "devices": devices, "server": spelled(values.get("hostname")), "unit": "samples",
                "suite": "DLIO", "mode": phase,
            },
            {
                "throughput": speed,
                "throughput_per_device": speed / devices if devices else None,
                "bandwidth": scaled(metric.get(f"{phase}_io_mean_MB_per_second"), 1e6),
                "utilisation": scaled(metric.get(f"{phase}_au_mean_percentage"), 0.01),
            },
            started=spelled(values.get("start")),
            more={"epochs": whole(values.get("epochs")), "ended": spelled(values.get("end"))},
        )  # fmt: skip
