"""MLPerf Inference's tables of results, CSV and JSON, of all rounds."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, NamedTuple

from steptime.formats import Original, Row, Rows, Skipped
from steptime.formats._mlperf import accuracy, known_text, locate_result, software
from steptime.formats._parse import (
    clean_text,
    integer,
    located_rows,
    number,
    precision,
    scale,
)

TITLE = "MLPerf Inference result tables"
# The same thing under the names of three generations of tables.
NAMES = {
    "submitter": ("Organization", "Submitter"),
    "model": ("Model", "benchmark"),
    "server": ("SystemName", "System"),
    "platform": ("Platform", "system_id"),
    "scenario": ("Scenario", "scenario"),
    "software": ("framework", "Software"),
    "nodes": ("number_of_nodes", "Nodes"),
    "accelerators": ("accelerators_per_node", "a#"),
    "accelerator": ("accelerator_model_name", "Accelerator"),
    "processors": ("host_processors_per_node", "p#"),
    "processor": ("host_processor_model_name", "Processor"),
    "result": ("Result", "Performance_Result", "perf_value"),
    "units": ("Result_Units", "Performance_Units", "Units", "perf_metric"),
    "division": ("Division", "Category"),
    "power": ("Result_Power", "Power_Result"),
    "power_units": ("Result_Power_Units", "Power_Units"),
    "kind": ("SystemType", "Suite"),
    "round": ("version",),
    "accuracy": ("Accuracy",),
    "weights": ("weight_data_types",),
}
# Kept in `more`, under these names.
KEPT = {
    "uid": ("uid", "ID"),
    "notes": ("notes", "Notes"),
    "availability": ("Availability",),
    "url": ("url", "Details"),
    "host": ("host_processor_model_name", "Processor"),
    "operating_system": ("operating_system",),
}
# The header of the earliest tables.
FIRST_TABLES = b"system_id,benchmark,scenario,perf_metric,perf_value"
# Models whose results are counted in tokens. Above this speed a table that says otherwise errs.
IN_TOKENS = re.compile(r"(llama|mixtral|deepseek)", re.IGNORECASE)
MOST_SAMPLES = 300


class Measured(NamedTuple):
    metrics: dict[str, float | None]
    unit: str = ""
    defects: tuple[str, ...] = ()


def recognises(name: str, head: bytes) -> bool:
    if head.lstrip()[:1] == b"[":
        has_model = b'"MlperfModel"' in head or b'"Performance_Result"' in head
        return b'"Scenario"' in head and has_model
    first_line = head.split(b"\n", 1)[0]
    return first_line.startswith(b"Organization,") or first_line.strip() == FIRST_TABLES


def read(file: Original) -> Rows:
    rows = located_rows(file.text)
    uids = Counter(row["uid"] for _, row in rows if isinstance(row.get("uid"), str))
    for location, row in rows:
        # A uid should be unique within a table, and is not in some of them.
        is_repeated = uids[str(row.get("uid"))] > 1
        yield _read_row(file, location, row, is_repeated=is_repeated)


def _first_value(row: dict[str, Any], keys: tuple[str, ...], default: Any = None) -> Any:
    for key in keys:
        if key in row:
            return row[key]
    return default


def _read_row(file: Original, location: str, row: dict[str, Any], *, is_repeated: bool) -> Row:
    values = {name: _first_value(row, keys) for name, keys in NAMES.items()}
    if not clean_text(values["model"]) or not clean_text(values["scenario"]):
        return Skipped(location, "names no model or no scenario")
    measured = _parse_result(values)
    metrics = measured.metrics | _power(values)
    if all(value is None for value in metrics.values()):
        reason = f"no result: {values['result']!r} {values['units'] or ''}".strip()
        return Skipped(location, reason)
    metrics["accuracy"] = accuracy(values["accuracy"])
    defects = measured.defects
    if is_repeated:
        defects = (*defects, "its uid occurs more than once in this file")
    more: dict[str, Any] = {}
    for name, keys in KEPT.items():
        more[name] = clean_text(_first_value(row, keys, ""))
    more["accuracy"] = clean_text(values["accuracy"])
    more["platform"] = values["platform"]
    more["division"] = values["division"]
    more["result"] = values["result"]
    more["result_unit"] = values["units"]
    dimensions = _dimensions(file, values)
    dimensions["unit"] = measured.unit
    return file.run(location, dimensions, metrics, more=more, defects=defects)


def _dimensions(file: Original, values: dict[str, Any]) -> dict[str, Any]:
    nodes = integer(values["nodes"])
    per_node = integer(values["accelerators"])
    device = known_text(values["accelerator"])
    if not per_node:
        # The processors of a machine without accelerators are its devices.
        device = known_text(values["processor"])
        per_node = integer(values["processors"]) if device else None
    return {
        "model": clean_text(values["model"]),
        "phase": "inference",
        "submitter": clean_text(values["submitter"]) or _submitter(file),
        "scenario": clean_text(values["scenario"]),
        "server": clean_text(values["server"] or values["platform"]),
        "suite": _suite(file, values),
        "device": device,
        "devices": per_node * (nodes or 1) if per_node else None,
        "nodes": nodes,
        "precision": _precision(values["weights"]),
        **software(values["software"]),
    }


def _suite(file: Original, values: dict[str, Any]) -> str:
    round_name = clean_text(values["round"])
    if round_name:
        suite = f"MLPerf Inference {round_name}"
    else:
        suite = locate_result(file).suite or "MLPerf Inference"
    names = [suite, clean_text(values["kind"]), clean_text(values["division"])]
    return " ".join(filter(None, names))


def _precision(weights: Any) -> str:
    """Empty if the table gives one for each part of the model."""
    if "{" in str(weights):
        return ""
    return precision(known_text(weights)).replace("unset", "")


def _submitter(file: Original) -> str:
    """The earliest tables lie in their submitter's folder and do not name it."""
    names = file.folders.parts
    divisions = [i for i, name in enumerate(names[:-2]) if name in ("closed", "open")]
    return names[divisions[-1] + 1] if divisions else ""


def _parse_result(values: dict[str, Any]) -> Measured:
    value = number(values["result"])
    units = clean_text(values["units"]).lower()
    scenario = clean_text(values["scenario"]).lower()
    if "latency" in units or (not units and scenario == "singlestream"):
        name = "latency_p99" if scenario == "multistream" else "latency_p90"
        return Measured({name: scale(value, 1e-9 if "(ns" in units else 1e-3)})
    if scenario == "multistream":
        # The earliest rounds count the streams, in samples per query.
        streams = value if not units or "per query" in units else None
        return Measured({"score": streams})
    if units in ("watts", "millijoules"):
        return Measured({"score": None})
    return _throughput(value, units, clean_text(values["model"]))


def _throughput(value: float | None, units: str, model: str) -> Measured:
    unit = "tokens" if "token" in units else "queries" if "queries" in units else "samples"
    if unit != "tokens" and IN_TOKENS.match(model) and (value or 0) > MOST_SAMPLES:
        defect = f"the table says {unit}/s; results of this model are counted in tokens/s"
        return Measured({"throughput": value}, "tokens", (defect,))
    return Measured({"throughput": value}, unit)


def _power(values: dict[str, Any]) -> dict[str, float | None]:
    """For streams the table has the energy of one query, otherwise the mean power."""
    units = clean_text(values["power_units"] or values["units"]).lower()
    if "joule" in units or "latency" in units:
        return {"energy": scale(values["power"], 1e-3)}
    return {"power": number(values["power"])}
