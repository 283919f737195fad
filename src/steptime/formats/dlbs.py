"""HPE DLBS: run logs (`__key__=value` lines), JSON of runs, and the text of a session."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from steptime.analysis.data_type import REAL
from steptime.formats import Original, Row, Rows, Skipped
from steptime.formats._parse import (
    as_dict,
    clean_text,
    first_match,
    framework,
    integer,
    number,
    parse_json,
    precision,
    ratio,
    scale,
)
from steptime.formats._writer import PREFIX, Page, extra_values, has_accelerators, read_extras

TITLE = "HPE DLBS logs and JSON"
# Keys may hold double underscores themselves: pytorch.__master_addr.
LINE = re.compile(r"^[ \t]*__([A-Za-z_][\w.-]*?\.[\w.-]+?)__[ \t]*=(.*)$", re.MULTILINE)
DEVICE = re.compile(r"\bname: ([^\n]+?) (?:major|computeCapability)")
SUMMARY = "- DLBS benchmark session summary"
# Their keys for our names, if no value has to be converted.
KEYS = {
    "model": "exp.model",
    "phase": "exp.phase",
    "framework": "exp.framework",
    "framework_version": "exp.framework_ver",
    "devices": "exp.num_gpus",
    "device": "exp.device_title",
    "nodes": "exp.num_nodes",
    "replica_batch": "exp.replica_batch",
    "effective_batch": "exp.effective_batch",
    "software": "exp.framework_title",
    "server": "exp.node_title",
    "throughput": "results.throughput",
    "jitter": "results.throughput_jitter",
    "speed_uncertainty": "results.throughput_stdm",
}
# Precisions that DLBS calls otherwise.
DTYPES = {"fp64": "float64", "fp32": "float32", "fp16": "float16"}
# Written as integers; the index holds floats.
COUNTS = ("devices", "nodes", "replica_batch", "effective_batch")
# What data lie on. DLBS takes any text; these are those of its manual.
STORES = {
    "mem": REAL["dram"],
    "nvme": REAL["nvme"],
    "local-ssd": REAL["ssd"],
    "local-hdd": REAL["disk"],
    "nfs": REAL["network"],
}
# DLBS's names for benchmarks of a framework.
FAMILIES = {"nvtfcnn": "tensorflow", "nvcnn": "tensorflow", "tensorflow": "tensorflow"}
NAMELESS = "names neither a model nor a framework"


def recognises(name: str, head: bytes) -> bool:
    if head.lstrip()[:1] == b"{":
        return b'"data"' in head and (b'"exp.' in head or b'"results.' in head)
    return b"\n__exp." in head or head.startswith(b"__exp.") or SUMMARY.encode() in head


def read(file: Original) -> Rows:
    if file.text.lstrip()[:1] == "{":
        yield from _read_json(file)
    elif SUMMARY in file.text and not LINE.search(file.text):
        yield Skipped("file", "the summary of a session: its runs are in their own logs")
    else:
        match = DEVICE.search(file.text)
        device = match[1].strip() if match else ""
        yield _read_run(file, "log", parse_log(file.text), device=device)


def _read_json(file: Original) -> Rows:
    runs = as_dict(parse_json(file.text)).get("data")
    if not isinstance(runs, list):
        return
    for position, run in enumerate(runs, 1):
        location = f"data {position}"
        if isinstance(run, dict):
            yield _read_run(file, location, run)
        else:
            yield Skipped(location, "no object")


def parse_log(text: str) -> dict[str, Any]:
    """The last value of a key counts: a launcher corrects what the plan said."""
    values = {}
    for key, value_text in LINE.findall(text):
        value = parse_json(value_text.strip())
        if value is None and value_text.strip() != "null":
            value = value_text.strip()
        values[key] = value
    return values


def _read_run(file: Original, location: str, values: dict[str, Any], device: str = "") -> Row:
    family = clean_text(values.get("exp.framework") or values.get("exp.framework_family"))
    if not family and "exp.model" not in values:
        return Skipped(location, NAMELESS)
    speed = number(values.get("results.throughput"))
    milliseconds = number(values.get("results.time"))
    devices = integer(values.get("exp.num_gpus")) or integer(values.get("exp.num_replicas"))
    extra_dimensions, extra_metrics = read_extras(values)
    dimensions = _dimensions(values)
    dimensions["framework"] = FAMILIES.get(family, framework(family))
    dimensions["devices"] = devices
    dimensions["device"] = (
        clean_text(values.get("exp.device_title"))
        or device
        or clean_text(values.get("exp.device_type"))
    )
    failure = ""
    # DLBS's own status is not reliable: a run with a speed or a time succeeded.
    if not (speed and speed > 0) and not (milliseconds and milliseconds > 0):
        message = clean_text(values.get("exp.status_msg") or values.get("exp.status"))
        failure = f"no result; the log says {message or 'nothing'}"
    start_time = clean_text(values.get("results.start_time"))
    return file.run(
        location,
        dimensions | extra_dimensions,
        {
            "throughput": speed,
            "throughput_per_device": ratio(speed, devices),
            "step_time": scale(milliseconds, 1e-3),
            "jitter": number(values.get("results.throughput_jitter")),
            "speed_uncertainty": number(values.get("results.throughput_stdm")),
            **extra_metrics,
        },
        failure=failure,
        started=re.sub(r"^([\d-]+):([\d:]+):(\d+)$", r"\1T\2.\3", start_time),
        more={
            "id": values.get("exp.id"),
            "keys": len(values),
            "docker_image": values.get("exp.docker_image"),
        },
    )


def _dimensions(values: dict[str, Any]) -> dict[str, Any]:
    """Those that follow from single keys."""
    software = values.get("exp.framework_title") or values.get("exp.docker_image")
    return {
        "model": clean_text(values.get("exp.model")),
        "phase": clean_text(values.get("exp.phase")),
        "framework_version": clean_text(values.get("exp.framework_ver")),
        "unit": "images",
        "suite": "HPE DLBS",
        "precision": precision(values.get("exp.dtype")),
        "nodes": integer(values.get("exp.num_nodes")),
        "replica_batch": integer(values.get("exp.replica_batch")),
        "effective_batch": integer(values.get("exp.effective_batch")),
        "data": _data(values),
        "software": clean_text(software),
        "server": clean_text(values.get("exp.node_title") or values.get("exp.node_id")),
    }


def write(rows: Sequence[dict[str, Any]]) -> Iterator[Page | Skipped]:
    """One JSON file. Times are milliseconds, throughput is that of all devices.

    DLBS takes keys of any name: values that it has no key for go under `steptime.`"""
    data = []
    ids = []
    for row in rows:
        # Its readers take such an entry for no result.
        if not (row.get("model") or row.get("framework")):
            yield Skipped(row["id"], NAMELESS)
            continue
        data.append(_run_keys(row))
        ids.append(row["id"])
    if data:
        text = json.dumps({"data": data}, indent=1, ensure_ascii=False)
        yield Page("dlbs.json", text.encode(), tuple(ids))


def _run_keys(row: dict[str, Any]) -> dict[str, Any]:
    keys = {key: row[name] for name, key in KEYS.items() if row.get(name) not in (None, "")}
    for name in COUNTS:
        if row.get(name):
            keys[KEYS[name]] = int(row[name])
    if not has_accelerators(row):
        keys["exp.device_type"] = "cpu"
        keys["exp.num_replicas"] = keys.pop("exp.num_gpus", 1)
        keys["exp.num_gpus"] = 0
    if row.get("precision"):
        keys["exp.dtype"] = DTYPES.get(row["precision"], row["precision"])
    if row.get("step_time"):
        keys["results.time"] = 1000 * row["step_time"]
    if row.get("started"):
        keys["results.start_time"] = row["started"]
    keys["exp.id"] = row["id"]
    if row.get("status", "ok") == "ok":
        keys["exp.status"] = "success"
    else:
        keys["exp.status"] = "failure"
        keys["exp.status_msg"] = row.get("failure") or row["status"]
    keys |= _data_keys(row.get("data") or "")
    return keys | extra_values(row, (*KEYS, "data", "precision", "step_time"))


def _data(values: dict[str, Any]) -> str:
    """DLBS says real or synthetic, and what real data lie on in a text of the user's.

    A folder is only named for real data."""
    origin = clean_text(values.get("exp.data"))
    store = clean_text(values.get("exp.data_store"))
    if not origin and clean_text(values.get("exp.data_dir")):
        origin = "real"
    if origin != "real":
        return origin or store
    if store in STORES:
        return STORES[store]
    return f"real ({store})" if store else origin


def _data_keys(data: str) -> dict[str, Any]:
    """Our value is kept under our name if theirs say less, for example about a cold cache."""
    origin = first_match(r"^(real|synthetic)\b", data)
    plain, _, tier = data.removesuffix(")").partition(" (")
    theirs = {our_store: store for store, our_store in STORES.items()}
    keys = {}
    if origin:
        keys["exp.data"] = origin
    if origin == "real":
        store = theirs.get(plain.removesuffix(", cold"), tier)
    else:
        store = "" if origin else data
    if store:
        keys["exp.data_store"] = store
    if _data(keys) != data:
        keys[f"{PREFIX}data"] = data
    return keys
