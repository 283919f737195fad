"""SuperBench's results of nodes: JSON lines, summaries and workbooks, one column a metric of one benchmark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from steptime.formats import Found, Original, Skipped
from steptime.formats._parse import number, objects, precision, spelled
from steptime.formats._xlsx import glimpse, is_sheet, sheets

TITLE = "SuperBench results of nodes"
# bert_models/pytorch-bert-base/steptime_train_float32[:rank]
MODEL = re.compile(
    r"(?:\w+_models)/(\w+)-([\w.-]+)/(steptime|throughput)_(train|inference)_(\w+?)(?::(\d+))?"
)
# The rest, by the end of its name: which metric it is, and how many of ours one of theirs is.
KNOWN = (
    (re.compile(r"gemm-flops/.*"), "flops", 1e9),
    (re.compile(r".*(?:_busbw|_algbw|_Mem_BW|-copy-bw/\w+)(?::\d+)?(?:_\w+)?"), "bandwidth", 1e9),
    (re.compile(r"ib-loopback/.*"), "bandwidth", 1e6),
    (re.compile(r"nccl-bw/.*_time(?::\d+)?"), "step_time", 1e-6),
    (
        re.compile(r"kernel-launch/.*(?:_time|_overhead)(?::\d+)?|.*matmul.*|.*_cost(?::\d+)?"),
        "step_time",
        1e-3,
    ),
)


def recognises(name: str, head: bytes) -> bool:
    if is_sheet(head):
        return b"steptime_train" in glimpse(head) or b"kernel-launch/" in glimpse(head)
    results = head.lstrip()[:1] in (b"{", b"[") and (
        b"_models/pytorch-" in head or b'"kernel-launch/' in head
    )
    return results or (head.lstrip()[:1] == b"{" and b'"gpu_usage:0"' in head[:4096])


def read(file: Original) -> Found:
    for place, row in _rows(file):
        if "gpu_usage:0" in row:
            yield Skipped(place, "the load of a node, not a result")
        elif "Defective Details" in row:
            yield Skipped(place, "how far a node is from a baseline: computed, not measured")
        else:
            yield from _node(file, place, row)


def _rows(file: Original) -> Iterator[tuple[str, dict[str, Any]]]:
    if not is_sheet(file.head):
        yield from objects(file.text)
        return
    for name, rows in sheets(file.content):
        for number_, cells in rows[1:] if name == "Raw Data" else ():
            yield (
                f"{name}, row {number_}",
                dict(zip(["node", *rows[0][1][1:]], cells, strict=False)),
            )


def _node(file: Original, place: str, row: dict[str, Any]) -> Found:
    node = spelled(row.get("node") or row.get("index"))
    networks: dict[tuple[str, ...], dict[str, Any]] = {}
    unknown = 0
    for key, value in row.items():
        if found := MODEL.fullmatch(key):
            configuration = (found[1], found[2], found[4], found[5], found[6] or "")
            networks.setdefault(configuration, {})[found[3]] = number(value)
        elif "/" not in key or key.startswith("diagnosis/"):
            continue
        elif key.endswith("return_code") or ("return_code:" in key):
            yield from _ended(file, f"{place}, {key}", node, (key, value))
        elif metric := next(
            ((name, factor) for pattern, name, factor in KNOWN if pattern.fullmatch(key)), None
        ):
            yield from _kernel(file, f"{place}, {key}", (node, key, value), metric)
        else:
            unknown += 1
    for told, found_ in networks.items():
        yield from _network(file, place, node, (told, found_))
    if unknown:
        yield Skipped(place, f"{unknown} metrics whose unit is not known here")


def _network(
    file: Original, place: str, node: str, told: tuple[tuple[str, ...], dict[str, float | None]]
) -> Found:
    (framework, model, phase, kind, rank), found = told
    milliseconds, speed = found.get("steptime"), found.get("throughput")
    if milliseconds is None and speed is None:
        yield Skipped(f"{place}, {model} {phase} {kind}", "no value")
        return
    yield file.run(
        f"{place}, {model} {phase} {kind} {rank}".rstrip(),
        {
            "model": model, "phase": "training" if phase == "train" else phase, "framework": framework, "server": node,
            "precision": precision(kind), "suite": "SuperBench", "unit": "samples",
        },
        {"step_time": None if milliseconds is None else milliseconds / 1e3, "throughput": speed},
    )  # fmt: skip


def _kernel(
    file: Original, place: str, told: tuple[str, str, Any], metric: tuple[str, float]
) -> Found:
    node, key, value = told
    name, factor = metric
    found = number(value)
    if found is None:
        yield Skipped(place, f"no value: {spelled(value)!r}")
        return
    operator, _, shape = key.partition("/")
    dimensions = {
        "operator": operator,
        "shape": shape.split(":")[0],
        "server": node,
        "suite": "SuperBench",
    }
    kind = re.match(r"(FP64|FP32|FP16|TF32|BF16|INT8|INT4)", shape)
    yield file.run(
        place, dimensions | {"devices": 1, "precision": kind[1].lower() if kind else ""}, {name: found * factor},
        more={"rank": key.partition(":")[2]},
    )  # fmt: skip


def _ended(file: Original, place: str, node: str, told: tuple[str, Any]) -> Found:
    key, value = told
    code = number(value)
    if code:
        operator = key.partition("/")[0]
        dimensions = {"operator": operator, "server": node, "suite": "SuperBench"}
        yield file.run(place, dimensions, {}, failure=f"the benchmark ended with code {code:g}")
