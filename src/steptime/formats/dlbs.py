"""HPE DLBS: run logs (`__key__=value` lines), JSON of runs, and the text of a session."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from steptime.analysis.data_type import REAL
from steptime.formats import Found, Original, Row, Skipped
from steptime.formats._parse import (
    framework,
    matches,
    number,
    parsed,
    precision,
    scaled,
    spelled,
    whole,
)
from steptime.formats._writer import OWN, Page, extra, extras

TITLE = "HPE DLBS logs and JSON"
# Keys may hold double underscores themselves: pytorch.__master_addr.
LINE = re.compile(r"^[ \t]*__([A-Za-z_][\w.-]*?\.[\w.-]+?)__[ \t]*=(.*)$", re.MULTILINE)
DEVICE = re.compile(r"\bname: ([^\n]+?) (?:major|computeCapability)")
# Ours for theirs, where nothing has to be converted.
KEYS = {
    "model": "exp.model", "phase": "exp.phase", "framework": "exp.framework", "framework_version": "exp.framework_ver",
    "devices": "exp.num_gpus", "device": "exp.device_title", "nodes": "exp.num_nodes",
    "replica_batch": "exp.replica_batch", "effective_batch": "exp.effective_batch", "software": "exp.framework_title",
    "server": "exp.node_title", "throughput": "results.throughput", "jitter": "results.throughput_jitter",
    "speed_uncertainty": "results.throughput_stdm",
}  # fmt: skip
DTYPES = {"fp64": "float64", "fp32": "float32", "fp16": "float16"}
COUNTS = ("devices", "nodes", "replica_batch", "effective_batch")
# What data lie on: their word is free, these are those of their manual.
STORES = {
    "mem": REAL["dram"], "nvme": REAL["nvme"], "local-ssd": REAL["ssd"], "local-hdd": REAL["disk"],
    "nfs": REAL["network"],
}  # fmt: skip
FAMILIES = {"nvtfcnn": "tensorflow", "nvcnn": "tensorflow", "tensorflow": "tensorflow"}


def recognises(name: str, head: bytes) -> bool:
    if head.lstrip()[:1] == b"{":
        return b'"data"' in head and (b'"exp.' in head or b'"results.' in head)
    return (
        b"\n__exp." in head
        or head.startswith(b"__exp.")
        or b"- DLBS benchmark session summary" in head
    )


def read(file: Original) -> Found:
    if file.text.lstrip()[:1] == "{":
        values = parsed(file.text)
        runs = values.get("data") if isinstance(values, dict) else None
        for i, run in enumerate(runs if isinstance(runs, list) else [], 1):
            yield (
                _run(file, f"data {i}", run)
                if isinstance(run, dict)
                else Skipped(f"data {i}", "no object")
            )
    elif "- DLBS benchmark session summary" in file.text and not LINE.search(file.text):
        yield Skipped("file", "the summary of a session: its runs are in their own logs")
    else:
        yield _run(file, "log", logged(file.text), device=_device(file.text))


def logged(text: str) -> dict[str, Any]:
    """What is said twice counts as it was said last: a launcher corrects what the plan said."""
    found = {}
    for key, value in LINE.findall(text):
        told = parsed(value.strip())
        found[key] = value.strip() if told is None and value.strip() != "null" else told
    return found


def _device(text: str) -> str:
    found = DEVICE.search(text)
    return found[1].strip() if found else ""


def _run(file: Original, place: str, values: dict[str, Any], device: str = "") -> Row:
    used = spelled(values.get("exp.framework") or values.get("exp.framework_family"))
    name = FAMILIES.get(used, framework(used))
    if not used and "exp.model" not in values:
        return Skipped(place, "names neither a model nor a framework")
    speed, milliseconds = (
        number(values.get("results.throughput")),
        number(values.get("results.time")),
    )
    devices = whole(values.get("exp.num_gpus")) or whole(values.get("exp.num_replicas"))
    good = bool(speed and speed > 0) or bool(
        milliseconds and milliseconds > 0
    )  # DLBS does not trust its own status
    message = spelled(values.get("exp.status_msg") or values.get("exp.status"))
    own_dimensions, own_metrics = extra(values)
    return file.run(
        place,
        {
            "model": spelled(values.get("exp.model")), "phase": spelled(values.get("exp.phase")), "framework": name,
            "framework_version": spelled(values.get("exp.framework_ver")), "unit": "images", "suite": "HPE DLBS",
            "precision": precision(values.get("exp.dtype")), "devices": devices,
            "device": spelled(values.get("exp.device_title")) or device or spelled(values.get("exp.device_type")),
            "nodes": whole(values.get("exp.num_nodes")), "replica_batch": whole(values.get("exp.replica_batch")),
            "effective_batch": whole(values.get("exp.effective_batch")), "data": _data(values),
            "software": spelled(values.get("exp.framework_title") or values.get("exp.docker_image")),
            "server": spelled(values.get("exp.node_title") or values.get("exp.node_id")), **own_dimensions,
        },
        {
            "throughput": speed,
            "throughput_per_device": speed / devices if speed and devices else None,
            "step_time": scaled(milliseconds, 1e-3),
            "jitter": number(values.get("results.throughput_jitter")),
            "speed_uncertainty": number(values.get("results.throughput_stdm")),
            **own_metrics,
        },
        failure="" if good else f"no result; the log says {message or 'nothing'}",
        started=re.sub(r"^([\d-]+):([\d:]+):(\d+)$", r"\1T\2.\3", spelled(values.get("results.start_time"))),
        more={"id": values.get("exp.id"), "keys": len(values), "docker_image": values.get("exp.docker_image")},
    )  # fmt: skip


def write(rows: Sequence[dict[str, Any]]) -> Iterator[Page]:
    """One JSON file. Times are milliseconds, throughput is of all devices together. DLBS takes keys of any name: what
    it has none for, the unit of the throughput too, goes under `steptime.`"""
    data = [_values(row) for row in rows]
    if data:
        text = json.dumps({"data": data}, indent=1, ensure_ascii=False)
        yield Page("dlbs.json", text.encode(), tuple(row["id"] for row in rows))


def _values(row: dict[str, Any]) -> dict[str, Any]:
    found = {key: row[name] for name, key in KEYS.items() if row.get(name) not in (None, "")}
    found |= {KEYS[name]: int(row[name]) for name in COUNTS if row.get(name)}
    if kind := row.get("precision"):
        found["exp.dtype"] = DTYPES.get(kind, kind)
    if seconds := row.get("step_time"):
        found["results.time"] = 1000 * seconds
    if row.get("started"):
        found["results.start_time"] = row["started"]
    good = row.get("status", "ok") == "ok"
    found |= {"exp.id": row["id"], "exp.status": "success" if good else "failure"}
    if not good:
        found["exp.status_msg"] = row.get("failure") or row["status"]
    return {
        **found,
        **_data_keys(row.get("data") or ""),
        **extras(row, (*KEYS, "data", "precision", "step_time")),
    }


def _data(values: dict[str, Any]) -> str:
    """DLBS says real or synthetic, and what real data lie on in a word of the user's. Where synthetic data lie it does
    not say. A folder is named for real data alone."""
    kind, store = spelled(values.get("exp.data")), spelled(values.get("exp.data_store"))
    if not kind and spelled(values.get("exp.data_dir")):
        kind = "real"
    if kind != "real":
        return kind or store
    return STORES.get(store) or (f"real ({store})" if store else kind)


def _data_keys(word: str) -> dict[str, Any]:
    """Our word stays beside theirs where they say less: a cold page cache, a tier's name, synthetic data's place."""
    kind = matches(r"^(real|synthetic)\b", word)
    plain, _, tier = word.removesuffix(")").partition(" (")
    known = {ours: theirs for theirs, ours in STORES.items()}.get(
        plain.removesuffix(", cold"), tier
    )
    store = known if kind == "real" else "" if kind else word
    found = {key: value for key, value in (("exp.data", kind), ("exp.data_store", store)) if value}
    return found if _data(found) == word else {**found, f"{OWN}data": word}
