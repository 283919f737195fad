"""What the tools that SuperBench runs print: copies, collectives, STREAM, fio, trtexec and more."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from statistics import median

from steptime.formats import Original, Row, Rows, Skipped
from steptime.formats._parse import (
    as_dict,
    clean_text,
    first_match,
    integer,
    number,
    parse_json,
    precision,
    scale,
)

TITLE = "Outputs of nccl-tests, nvbandwidth, STREAM, fio, trtexec, Megatron …"
# Size, count, type, operation, root, then time and bandwidths out of place and in place.
NCCL = re.compile(
    r"^ *(\d+) +(\d+) +(\w+) +(?:(\w+) +)?(?:-?\d+ +)?([\d.]+) +([\d.]+) +([\d.]+) +\S+"
    r" +([\d.]+) +([\d.]+) +([\d.]+)"
)
CUDA = re.compile(
    r"^bandwidthTest-(?P<mode>\S+), Bandwidth = (?P<bandwidth>[\d.]+) GB/s, Time = ([\d.]+) s,"
    r" Size = (?P<bytes>\d+) bytes, NumDevsUsed = (?P<devices>\d+)"
)
ROCM = re.compile(
    r"^ *(?P<mode>\w+) +(?P<shape>\+?\d+\w+) +(?P<unit>GB/sec|ms) +(?P<value>[\d.]+)"
    r" +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)"
)
ROCM_UNITS = {"GB/sec": ("bandwidth", 1e9), "ms": ("step_time", 1e-3)}
# cpu_to_gpu0_by_dma 25.6
COPY = re.compile(r"^((?:cpu|gpu\d+)_(?:to|and)_\S+) ([\d.]+)$")
GPU_STREAM = re.compile(r"^(STREAM_\w+_gpu_\d+_buffer_\d+_block_\d+)\s+([\d.]+)\s+([\d.]+)")
STREAM = re.compile(r"^(Copy|Scale|Add|Triad): +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)")
BANDWIDTH_SUM = re.compile(r"^SUM (\w+) ([\d.]+)")
# The operator, and how many bytes per second one unit of the second column is.
BANDWIDTHS = (
    (COPY, "copy", 1e9),
    (GPU_STREAM, "stream", 1e9),
    (STREAM, "stream", 1e6),
    (BANDWIDTH_SUM, "copy", 1e9),
)
# One line per iteration of Megatron-DeepSpeed.
MEGATRON = re.compile(
    r"iteration +(\d+)/.*?elapsed time per iteration \(ms\): ([\d.]+)"
    r".*?global batch size: +(\d+).*?lm loss: (\S+)"
)
# m, n, k, batch, microseconds, TFLOP/s
GEMM = re.compile(r"^(\d+)\s+(\d+)\s+(\d+)\s+\d+\s+([\d.]+)\s+([\d.]+)$")
LATENCY = re.compile(r"^Latency of step (\d+): ([\d.]+) ms", re.MULTILINE)
PERCENTILES = (50, 90, 99)
# Where a mark of a tool must be.
HEAD = 16_384


def recognises(name: str, head: bytes) -> bool:
    return any(mark in head[:HEAD] for mark in READERS)


def read(file: Original) -> Rows:
    head = file.head[:HEAD]
    reader = next((READERS[mark] for mark in READERS if mark in head), _read_bandwidths)
    runs = 0
    for row in reader(file):
        runs += 1
        yield row
    if not runs:
        yield Skipped("log", "the log ends before its first result")


def _matching_lines(
    file: Original, pattern: re.Pattern[str]
) -> Iterator[tuple[str, re.Match[str]]]:
    """The lines that a pattern matches, with their locations."""
    for number_of_line, line in enumerate(file.text.splitlines(), 1):
        if match := pattern.match(line):
            yield f"line {number_of_line}", match


def _read_cuda(file: Original) -> Rows:
    device = first_match(r"^ *Device \d+: (.+)$", file.text)
    for location, match in _matching_lines(file, CUDA):
        yield file.run(
            location,
            {
                "suite": "SuperBench",
                "operator": "copy",
                "mode": match["mode"],
                "shape": f"{match['bytes']} bytes",
                "device": device,
                "devices": int(match["devices"]),
            },
            {"bandwidth": scale(match["bandwidth"], 1e9)},
        )


def _read_rocm(file: Original) -> Rows:
    device = first_match(r"^Device:(.+?) Mem=", file.text)
    for location, match in _matching_lines(file, ROCM):
        name, factor = ROCM_UNITS[match["unit"]]
        yield file.run(
            location,
            {
                "suite": "SuperBench",
                "operator": "copy",
                "mode": match["mode"],
                "shape": match["shape"],
                "device": device,
                "devices": 1,
            },
            {name: scale(match["value"], factor)},
        )


def _read_nccl(file: Original) -> Rows:
    """Out of place. The bus bandwidth, which compares with the links, is kept in `more`."""
    ranks = len(re.findall(r"^#\s+Rank\s+\d+", file.text, re.MULTILINE))
    device = first_match(r"^#\s+Rank.*\] (.+)$", file.text)
    operator = re.sub(r"^nccl_", "", file.folders.stem)
    for location, match in _matching_lines(file, NCCL):
        yield file.run(
            location,
            {
                "operator": operator,
                "shape": f"{match[1]} bytes",
                "precision": precision(match[3]),
                "devices": ranks or None,
                "device": device,
                "suite": "nccl-tests",
                "phase": "communication",
            },
            {"step_time": scale(match[5], 1e-6), "bandwidth": scale(match[6], 1e9)},
            more={
                "bus_bandwidth": scale(match[7], 1e9),
                "in_place_seconds": scale(match[8], 1e-6),
            },
        )


def _read_bandwidths(file: Original) -> Rows:
    device = first_match(r'^Device \d+: "?([^"(\n]+)', file.text)
    for number_of_line, line in enumerate(file.text.splitlines(), 1):
        for pattern, operator, factor in BANDWIDTHS:
            match = pattern.match(line)
            if not match:
                continue
            dimensions = {
                "operator": operator,
                "mode": match[1],
                "device": device,
                "suite": "SuperBench",
            }
            bandwidth = scale(match[2], factor)
            yield file.run(f"line {number_of_line}", dimensions, {"bandwidth": bandwidth})


def _read_latencies(file: Original) -> Rows:
    milliseconds = [number(value) for _, value in LATENCY.findall(file.text)]
    seconds = sorted(value / 1e3 for value in milliseconds if value is not None)
    if not seconds:
        return
    metrics: dict[str, float | None] = {"step_time": median(seconds)}
    for percent in PERCENTILES:
        position = int(percent / 100 * len(seconds))
        metrics[f"latency_p{percent}"] = seconds[min(len(seconds) - 1, position)]
    dimensions = {"operator": "dist-inference", "phase": "inference", "suite": "SuperBench"}
    yield file.run("log", dimensions, metrics, more={"steps": len(seconds)})


def _read_fio(file: Original) -> Rows:
    jobs = as_dict(parse_json(file.text)).get("jobs")
    if not isinstance(jobs, list):
        return
    for entry in jobs:
        job = as_dict(entry)
        name = clean_text(job.get("jobname"))
        for direction in ("read", "write"):
            values = as_dict(job.get(direction))
            if not number(values.get("bw_bytes")):
                continue
            percentiles = as_dict(as_dict(values.get("lat_ns")).get("percentile"))
            metrics = {
                "bandwidth": number(values.get("bw_bytes")),
                "throughput": number(values.get("iops")),
            }
            for percent in PERCENTILES:
                latency = percentiles.get(f"{percent}.000000")
                metrics[f"latency_p{percent}"] = scale(latency, 1e-9)
            dimensions = {
                "operator": "disk",
                "mode": f"{name} {direction}",
                "phase": "ingest",
                "suite": "fio",
            }
            yield file.run(f"{name}, {direction}", dimensions, metrics)


def _read_trtexec(file: Original) -> Rows:
    text = file.text
    mean = first_match(r"Latency: min = .*?mean = ([\d.]+) ms", text)
    median_ms = first_match(r"Latency: min = .*?median = ([\d.]+) ms", text)
    p99_ms = first_match(r"Latency: min = .*?percentile\(99%\) = ([\d.]+) ms", text)
    batch = integer(first_match(r"Input inference shapes?: \w+=(\d+)x", text))
    precisions = first_match(r"Precision: (\S+)", text).split("+")
    failure = ""
    if not mean:
        reason = first_match(r"(Timing trace has .*)$", text)
        failure = f"no latency: {reason or 'the log is cut off'}"
    yield file.run(
        "log",
        {
            "model": first_match(r"Model: \S*?([\w.-]+)\.onnx", text),
            "phase": "inference",
            "framework": "tensorrt",
            "device": first_match(r"Selected Device: (.+)$", text),
            "devices": 1,
            "replica_batch": batch,
            "unit": "queries",
            "precision": precisions[-1].lower(),
            "suite": "trtexec",
            "effective_batch": batch,
        },
        {
            "step_time": scale(mean, 1e-3),
            "throughput": number(first_match(r"Throughput: ([\d.]+) qps", text)),
            "latency_p50": scale(median_ms, 1e-3),
            "latency_p99": scale(p99_ms, 1e-3),
        },
        failure=failure,
        more={"batch": batch},
    )


def _read_megatron(file: Original) -> Rows:
    for match in MEGATRON.finditer(file.text):
        batch = int(match[3])
        seconds = scale(match[2], 1e-3)
        yield file.run(
            f"iteration {match[1]}",
            {
                "model": "gpt",
                "phase": "training",
                "framework": "megatron-deepspeed",
                "effective_batch": batch,
                "unit": "samples",
                "suite": "SuperBench",
            },
            {
                "step_time": seconds,
                "throughput": batch / seconds if seconds else None,
                "loss": number(match[4]),
            },
        )


def _read_gemm(file: Original) -> Rows:
    for location, match in _matching_lines(file, GEMM):
        m, n, k, microseconds, teraflops = match.groups()
        yield file.run(
            location,
            {
                "suite": "SuperBench",
                "operator": "gemm",
                "shape": f"m{m} n{n} k{k}",
                "devices": 1,
            },
            {"step_time": scale(microseconds, 1e-6), "flops": scale(teraflops, 1e12)},
        )


# By what the output of each tool has in its first bytes.
READERS: dict[bytes, Callable[[Original], Iterator[Row]]] = {
    b"bandwidthTest-": _read_cuda,
    b"algbw   busbw": _read_nccl,
    b"nvbandwidth Version": _read_bandwidths,
    b"STREAM version": _read_bandwidths,
    b"_Bandwidth_": _read_rocm,
    b"STREAM Benchmark": _read_bandwidths,
    b"_by_dma": _read_bandwidths,
    b"Latency of step": _read_latencies,
    b'"fio version"': _read_fio,
    b"=== Model Options ===": _read_trtexec,
    b"Megatron-DeepSpeed": _read_megatron,
    b"cublaslt_gemm": _read_gemm,
}
