"""MLPerf Inference's tables of results, CSV and JSON, of all rounds."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from steptime.formats import Found, Original, Row, Skipped
from steptime.formats._mlperf import accuracy, placed, said, software
from steptime.formats._parse import number, objects, precision, scaled, spelled, table, whole

TITLE = "MLPerf Inference result tables"
# The same thing under the names of three generations of tables.
NAMES = {
    "submitter": ("Organization", "Submitter"), "model": ("Model", "benchmark"), "server": ("SystemName", "System"),
    "platform": ("Platform", "system_id"), "scenario": ("Scenario", "scenario"), "software": ("framework", "Software"),
    "nodes": ("number_of_nodes", "Nodes"), "accelerators": ("accelerators_per_node", "a#"),
    "accelerator": ("accelerator_model_name", "Accelerator"), "processors": ("host_processors_per_node", "p#"),
    "processor": ("host_processor_model_name", "Processor"), "result": ("Result", "Performance_Result", "perf_value"),
    "units": ("Result_Units", "Performance_Units", "Units", "perf_metric"), "division": ("Division", "Category"),
    "power": ("Result_Power", "Power_Result"), "power_units": ("Result_Power_Units", "Power_Units"),
    "kind": ("SystemType", "Suite"), "round": ("version",), "accuracy": ("Accuracy",),
    "weights": ("weight_data_types",),
}  # fmt: skip
KEPT = {
    "uid": ("uid", "ID"), "notes": ("notes", "Notes"), "availability": ("Availability",), "url": ("url", "Details"),
    "host": ("host_processor_model_name", "Processor"), "operating_system": ("operating_system",),
}  # fmt: skip
IN_TOKENS = re.compile(r"(llama|mixtral|deepseek)", re.IGNORECASE)


def recognises(name: str, head: bytes) -> bool:
    first = head.lstrip()[:1]
    if first == b"[":
        return b'"Scenario"' in head and (
            b'"MlperfModel"' in head or b'"Performance_Result"' in head
        )
    line = head.split(b"\n", 1)[0]
    return (
        line.startswith(b"Organization,")
        or line.strip() == b"system_id,benchmark,scenario,perf_metric,perf_value"
    )


def read(file: Original) -> Found:
    if file.text.lstrip()[:1] == "[":
        rows: list[tuple[str, dict[str, Any]]] = objects(file.text)
    else:
        rows = [(f"line {line}", dict(row)) for line, row in table(file.text)]
    times = Counter(row["uid"] for _, row in rows if isinstance(row.get("uid"), str))
    for place, row in rows:
        yield _row(file, place, row, twice=times[str(row.get("uid"))] > 1)


def _row(file: Original, place: str, row: dict[str, Any], *, twice: bool) -> Row:
    told = {
        name: next((row[key] for key in keys if key in row), None) for name, keys in NAMES.items()
    }
    if not spelled(told["model"]) or not spelled(told["scenario"]):
        return Skipped(place, "names no model or no scenario")
    metrics, unit, defects = _result(told)
    metrics |= _power(told) | {"accuracy": accuracy(told["accuracy"])}
    if not any(value is not None for name, value in metrics.items() if name != "accuracy"):
        return Skipped(place, f"no result: {told['result']!r} {told['units'] or ''}".strip())
    if twice:
        defects.append("its uid occurs more than once in this file")
    kept: dict[str, Any] = {
        name: spelled(next((row[key] for key in keys if key in row), ""))
        for name, keys in KEPT.items()
    }
    kept |= {
        "accuracy": spelled(told["accuracy"]),
        "platform": told["platform"],
        "division": told["division"],
    }
    kept |= {"result": told["result"], "result_unit": told["units"]}
    return file.run(
        place, _dimensions(file, told) | {"unit": unit}, metrics, more=kept, defects=tuple(defects)
    )


def _dimensions(file: Original, told: dict[str, Any]) -> dict[str, Any]:
    nodes, each = whole(told["nodes"]), whole(told["accelerators"])
    device = said(told["accelerator"]) if each else said(told["processor"])
    per_node = each or (whole(told["processors"]) if device else None)
    round_ = spelled(told["round"])
    suite = f"MLPerf Inference {round_}" if round_ else placed(file).suite or "MLPerf Inference"
    return {
        "model": spelled(told["model"]),
        "phase": "inference",
        "submitter": spelled(told["submitter"]) or _submitter(file),
        "scenario": spelled(told["scenario"]),
        "server": spelled(told["server"] or told["platform"]),
        "suite": " ".join(filter(None, [suite, spelled(told["kind"]), spelled(told["division"])])),
        "device": device,
        "devices": per_node * (nodes or 1) if per_node else None,
        "nodes": nodes,
        "precision": ""
        if "{" in str(told["weights"])
        else precision(said(told["weights"])).replace("unset", ""),
        **software(told["software"]),
    }


def _submitter(file: Original) -> str:
    """The earliest tables lie in their submitter's folder and do not name it."""
    parts = file.folders.parts
    divisions = [i for i, part in enumerate(parts[:-2]) if part in ("closed", "open")]
    return parts[divisions[-1] + 1] if divisions else ""


def _result(told: dict[str, Any]) -> tuple[dict[str, float | None], str, list[str]]:
    value, units, scenario = (
        number(told["result"]),
        spelled(told["units"]).lower(),
        spelled(told["scenario"]).lower(),
    )
    if "latency" in units or (not units and scenario == "singlestream"):
        name = "latency_p99" if scenario == "multistream" else "latency_p90"
        return {name: scaled(value, 1e-9 if "(ns" in units else 1e-3)}, "", []
    if scenario == "multistream" or units in ("watts", "millijoules"):
        return (
            {
                "score": value
                if scenario == "multistream" and "per query" in (units or "per query")
                else None
            },
            "",
            [],
        )
    unit = "tokens" if "token" in units else "queries" if "queries" in units else "samples"
    defects = []
    if unit != "tokens" and IN_TOKENS.match(spelled(told["model"])) and (value or 0) > 300:
        unit, said_unit = "tokens", unit
        defects.append(
            f"the table says {said_unit}/s; results of this model are counted in tokens/s"
        )
    return {"throughput": value}, unit, defects


def _power(told: dict[str, Any]) -> dict[str, float | None]:
    """Of the streams the table gives the energy of one query, of the rest the mean power."""
    units = spelled(told["power_units"] or told["units"]).lower()
    if "joule" in units or "latency" in units:
        return {"energy": scaled(told["power"], 1e-3)}
    return {"power": number(told["power"])}
