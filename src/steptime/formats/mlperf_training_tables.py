"""MLPerf Training's tables of results, CSV and JSON: minutes to the target."""

from __future__ import annotations

from typing import Any

from steptime.formats import Original, Row, Rows, Skipped
from steptime.formats._mlperf import accuracy, known_text, locate_result, software
from steptime.formats._parse import clean_text, integer, located_rows, number, scale

TITLE = "MLPerf Training result tables"
# Columns of the CSV tables that hold results.
BENCHMARKS = {
    *("bert", "dlrm", "dlrm_dcnv2", "maskrcnn", "minigo", "resnet", "ssd", "rnnt", "unet3d"),
    *("gpt3", "retinanet", "stable_diffusion", "llama2_70b_lora", "llama31_405b", "llama31_8b"),
    *("rgat", "gnn", "flux1", "gnmt", "transformer", "ncf", "mask"),
}
# Kept in `more` as they are.
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


def read(file: Original) -> Rows:
    for location, row in located_rows(file.text):
        if "Result" in row:
            model = clean_text(row.get("Model_ID"))
            yield _read_result(file, location, row, model, row["Result"])
            continue
        models = [name for name in row if name in BENCHMARKS and number(row[name]) is not None]
        for model in models:
            yield _read_result(file, f"{location}, {model}", row, model, row[model])
        if not models:
            yield Skipped(location, "has no result for any benchmark")


def _read_result(
    file: Original, location: str, row: dict[str, Any], model: str, result: Any
) -> Row:
    minutes = number(result)
    if minutes is None:
        return Skipped(location, f"no result: {result!r}")
    accelerators = integer(row.get("accelerators_count"))
    device_key = "accelerator_model_name" if accelerators else "host_processor_model_name"
    dimensions = {
        "model": model,
        "phase": "training",
        "submitter": clean_text(row.get("submitter")),
        "server": clean_text(row.get("system")),
        "suite": f"{_suite(file, row)} {clean_text(row.get('division'))}".strip(),
        "device": known_text(row.get(device_key)),
        "devices": accelerators or integer(row.get("host_processors_count")),
        "nodes": integer(row.get("number_of_nodes")),
        "data": clean_text(row.get("Dataset")),
        **software(row.get("framework")),
    }
    metrics = {"time_to_accuracy": scale(minutes, 60.0), "accuracy": accuracy(row.get("Accuracy"))}
    more = {name: row.get(name) for name in KEPT}
    return file.run(location, dimensions, metrics, more=more)


def _suite(file: Original, row: dict[str, Any]) -> str:
    round_name = clean_text(row.get("version"))
    if round_name:
        return f"MLPerf Training v{round_name.lstrip('v')}"
    return locate_result(file).suite or "MLPerf Training"
