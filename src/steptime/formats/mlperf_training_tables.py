"""MLPerf Training's tables of results, CSV and JSON: minutes to the target, one column a benchmark."""

from __future__ import annotations

from typing import Any

from steptime.formats import Found, Original, Row, Skipped
from steptime.formats._mlperf import accuracy, placed, said, software
from steptime.formats._parse import number, objects, scaled, spelled, table, whole

TITLE = "MLPerf Training result tables"
BENCHMARKS = {
    "bert", "dlrm", "dlrm_dcnv2", "maskrcnn", "minigo", "resnet", "ssd", "rnnt", "unet3d", "gpt3", "retinanet",
    "stable_diffusion", "llama2_70b_lora", "llama31_405b", "llama31_8b", "rgat", "gnn", "flux1", "gnmt", "transformer",
    "ncf", "mask",
}  # fmt: skip
KEPT = (
    "uid",
    "notes",
    "availability",
    "division",
    "details_url",
    "host_processor_model_name",
    "Accuracy_Metric",
)


def recognises(name: str, head: bytes) -> bool:
    if head.lstrip()[:1] == b"[":
        return b'"accelerators_count"' in head and b'"submitter"' in head
    return head.startswith(b"division,availability,submitter,system,")


def read(file: Original) -> Found:
    if file.text.lstrip()[:1] == "[":
        rows: list[tuple[str, dict[str, Any]]] = objects(file.text)
    else:
        rows = [(f"line {line}", dict(row)) for line, row in table(file.text)]
    for place, row in rows:
        if "Result" in row:
            yield _run(
                file, place, row, {"model": spelled(row.get("Model_ID")), "result": row["Result"]}
            )
        else:
            results = {
                name: row[name]
                for name in row
                if name in BENCHMARKS and number(row[name]) is not None
            }
            for model, result in results.items():
                yield _run(file, f"{place}, {model}", row, {"model": model, "result": result})
            if not results:
                yield Skipped(place, "has no result for any benchmark")


def _run(file: Original, place: str, row: dict[str, Any], told: dict[str, Any]) -> Row:
    minutes = number(told["result"])
    if minutes is None:
        return Skipped(place, f"no result: {told['result']!r}")
    accelerators = whole(row.get("accelerators_count"))
    device = (
        said(row.get("accelerator_model_name"))
        if accelerators
        else said(row.get("host_processor_model_name"))
    )
    round_ = spelled(row.get("version"))
    suite = (
        f"MLPerf Training v{round_.lstrip('v')}"
        if round_
        else placed(file).suite or "MLPerf Training"
    )
    return file.run(
        place,
        {
            "model": told["model"], "phase": "training", "submitter": spelled(row.get("submitter")),
            "server": spelled(row.get("system")), "suite": f"{suite} {spelled(row.get('division'))}".strip(),
            "device": device, "devices": accelerators or whole(row.get("host_processors_count")),
            "nodes": whole(row.get("number_of_nodes")), "data": spelled(row.get("Dataset")),
            **software(row.get("framework")),
        },
        {"time_to_accuracy": scaled(minutes, 60.0), "accuracy": accuracy(row.get("Accuracy"))},
        more={name: row.get(name) for name in KEPT},
    )  # fmt: skip
