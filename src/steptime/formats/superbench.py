"""SuperBench's results of nodes: JSON lines, summaries and workbooks.

Each column is one metric of one benchmark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from steptime.formats import Original, Row, Rows, Skipped
from steptime.formats._parse import clean_text, json_objects, number, precision, scale
from steptime.formats._xlsx import glimpse, is_sheet, sheets

TITLE = "SuperBench results of nodes"
# bert_models/pytorch-bert-base/steptime_train_float32[:rank]
MODEL = re.compile(
    r"(?:\w+_models)/(\w+)-([\w.-]+)/(steptime|throughput)_(train|inference)_(\w+?)(?::(\d+))?"
)
# FP32 or INT8 at the beginning of a GEMM's name.
PRECISION = re.compile(r"(FP64|FP32|FP16|TF32|BF16|INT8|INT4)")


class Metric(NamedTuple):
    """Our name for the columns of a pattern, and how many of ours one of theirs is."""

    pattern: re.Pattern[str]
    name: str
    factor: float


METRICS = (
    Metric(re.compile(r"gemm-flops/.*"), "flops", 1e9),
    Metric(
        re.compile(r".*(?:_busbw|_algbw|_Mem_BW|-copy-bw/\w+)(?::\d+)?(?:_\w+)?"), "bandwidth", 1e9
    ),
    Metric(re.compile(r"ib-loopback/.*"), "bandwidth", 1e6),
    Metric(re.compile(r"nccl-bw/.*_time(?::\d+)?"), "step_time", 1e-6),
    Metric(
        re.compile(r"kernel-launch/.*(?:_time|_overhead)(?::\d+)?|.*matmul.*|.*_cost(?::\d+)?"),
        "step_time",
        1e-3,
    ),
)


class Network(NamedTuple):
    framework: str
    model: str
    phase: str
    precision: str
    rank: str


def recognises(name: str, head: bytes) -> bool:
    if is_sheet(head):
        texts = glimpse(head)
        return b"steptime_train" in texts or b"kernel-launch/" in texts
    first = head.lstrip()[:1]
    if first in (b"{", b"[") and (b"_models/pytorch-" in head or b'"kernel-launch/' in head):
        return True
    return first == b"{" and b'"gpu_usage:0"' in head[:4096]


def read(file: Original) -> Rows:
    for location, row in _located_rows(file):
        if "gpu_usage:0" in row:
            yield Skipped(location, "the load of a node, not a result")
        elif "Defective Details" in row:
            yield Skipped(location, "how far a node is from a baseline: computed, not measured")
        else:
            yield from _read_node(file, location, row)


def _located_rows(file: Original) -> Iterator[tuple[str, dict[str, Any]]]:
    if not is_sheet(file.head):
        yield from json_objects(file.text)
        return
    for name, rows in sheets(file.content):
        if name != "Raw Data" or not rows:
            continue
        columns = ["node", *rows[0][1][1:]]
        for number_of_row, cells in rows[1:]:
            yield f"{name}, row {number_of_row}", dict(zip(columns, cells, strict=False))


def _read_node(file: Original, location: str, row: dict[str, Any]) -> Rows:
    node = clean_text(row.get("node") or row.get("index"))
    networks: dict[Network, dict[str, float | None]] = {}
    # A metric without a known unit is counted and not guessed.
    unknown = 0
    for key, value in row.items():
        if match := MODEL.fullmatch(key):
            framework, model, quantity, phase, kind, rank = match.groups()
            network = Network(framework, model, phase, kind, rank or "")
            networks.setdefault(network, {})[quantity] = number(value)
        elif "/" not in key or key.startswith("diagnosis/"):
            continue
        elif key.endswith("return_code") or "return_code:" in key:
            yield from _read_return_code(file, f"{location}, {key}", node, key, value)
        elif metric := _find_metric(key):
            yield _read_kernel(file, f"{location}, {key}", node, key, value, metric)
        else:
            unknown += 1
    for network, values in networks.items():
        yield _read_network(file, location, node, network, values)
    if unknown:
        yield Skipped(location, f"{unknown} metrics whose unit is not known here")


def _find_metric(key: str) -> Metric | None:
    return next((metric for metric in METRICS if metric.pattern.fullmatch(key)), None)


def _read_network(
    file: Original, location: str, node: str, network: Network, values: dict[str, float | None]
) -> Row:
    name = f"{location}, {network.model} {network.phase} {network.precision}"
    milliseconds = values.get("steptime")
    speed = values.get("throughput")
    if milliseconds is None and speed is None:
        return Skipped(name, "no value")
    return file.run(
        f"{name} {network.rank}".rstrip(),
        {
            "model": network.model,
            "phase": "training" if network.phase == "train" else network.phase,
            "framework": network.framework,
            "server": node,
            "precision": precision(network.precision),
            "suite": "SuperBench",
            "unit": "samples",
        },
        {"step_time": None if milliseconds is None else milliseconds / 1e3, "throughput": speed},
    )


def _read_kernel(
    file: Original, location: str, node: str, key: str, value: Any, metric: Metric
) -> Row:
    scaled = scale(value, metric.factor)
    if scaled is None:
        return Skipped(location, f"no value: {clean_text(value)!r}")
    operator, _, shape = key.partition("/")
    match = PRECISION.match(shape)
    return file.run(
        location,
        {
            "operator": operator,
            "shape": shape.split(":")[0],
            "server": node,
            "suite": "SuperBench",
            "devices": 1,
            "precision": match[1].lower() if match else "",
        },
        {metric.name: scaled},
        more={"rank": key.partition(":")[2]},
    )


def _read_return_code(file: Original, location: str, node: str, key: str, value: Any) -> Rows:
    """A benchmark that ended well has its results in other columns."""
    code = number(value)
    if code:
        operator = key.partition("/")[0]
        dimensions = {"operator": operator, "server": node, "suite": "SuperBench"}
        failure = f"the benchmark ended with code {code:g}"
        yield file.run(location, dimensions, {}, failure=failure)
