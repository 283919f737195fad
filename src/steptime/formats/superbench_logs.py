"""What the tools under SuperBench print: copies, collectives, STREAM, fio, trtexec, Megatron, GEMM under a profiler."""

from __future__ import annotations

import re
from collections.abc import Callable
from statistics import median
from typing import Any

from steptime.formats import Found, Original, Skipped
from steptime.formats._parse import matches, number, parsed, precision, scaled, spelled, whole

TITLE = "Outputs of nccl-tests, nvbandwidth, STREAM, fio, trtexec, Megatron …"
NCCL = re.compile(
    r"^ *(\d+) +(\d+) +(\w+) +(?:(\w+) +)?(?:-?\d+ +)?([\d.]+) +([\d.]+) +([\d.]+) +\S+"
    r" +([\d.]+) +([\d.]+) +([\d.]+)"
)
CUDA = re.compile(
    r"^bandwidthTest-(\S+), Bandwidth = ([\d.]+) GB/s, Time = ([\d.]+) s, Size = (\d+) bytes, NumDevsUsed = (\d+)"
)
ROCM = re.compile(
    r"^ *(\w+) +(\+?\d+\w+) +(GB/sec|ms) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)"
)
COPY = re.compile(r"^((?:cpu|gpu\d+)_(?:to|and)_\S+) ([\d.]+)$")
GPU_STREAM = re.compile(r"^(STREAM_\w+_gpu_\d+_buffer_\d+_block_\d+)\s+([\d.]+)\s+([\d.]+)")
STREAM = re.compile(r"^(Copy|Scale|Add|Triad): +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)")
BANDWIDTH_SUM = re.compile(r"^SUM (\w+) ([\d.]+)")
MEGATRON = re.compile(
    r"iteration +(\d+)/.*?elapsed time per iteration \(ms\): ([\d.]+).*?global batch size: +(\d+).*?lm loss: (\S+)"
)
GEMM = re.compile(r"^(\d+)\s+(\d+)\s+(\d+)\s+\d+\s+([\d.]+)\s+([\d.]+)$")
LATENCY = re.compile(r"^Latency of step (\d+): ([\d.]+) ms", re.MULTILINE)
MARKS: dict[bytes, str] = {
    b"bandwidthTest-": "cuda", b"algbw   busbw": "nccl", b"nvbandwidth Version": "lines", b"STREAM version": "lines",
    b"_Bandwidth_": "rocm", b"STREAM Benchmark": "lines", b"_by_dma": "lines", b"Latency of step": "latency",
    b'"fio version"': "fio", b"=== Model Options ===": "trtexec", b"Megatron-DeepSpeed": "megatron",
    b"cublaslt_gemm": "gemm",
}  # fmt: skip


def recognises(name: str, head: bytes) -> bool:
    return any(mark in head[:16_384] for mark in MARKS)


def read(file: Original) -> Found:
    kind = next((name for mark, name in MARKS.items() if mark in file.head[:16_384]), "lines")
    reader: Callable[[Original], Found] = READERS[kind]
    runs = 0
    for found in reader(file):
        runs += 1
        yield found
    if not runs:
        yield Skipped("log", "the log ends before its first result")


def _by_line(
    file: Original, pattern: re.Pattern[str], make: Callable[[re.Match[str]], tuple[Any, Any]]
) -> Found:
    for i, line in enumerate(file.text.splitlines(), 1):
        if found := pattern.match(line):
            dimensions, metrics = make(found)
            yield file.run(f"line {i}", {"suite": "SuperBench", **dimensions}, metrics)


def _cuda(file: Original) -> Found:
    device = matches(r"^ *Device \d+: (.+)$", file.text)
    return _by_line(
        file, CUDA,
        lambda m: (
            {"operator": "copy", "mode": m[1], "shape": f"{m[4]} bytes", "device": device, "devices": int(m[5])},
            {"bandwidth": scaled(m[2], 1e9)},
        ),
    )  # fmt: skip


def _rocm(file: Original) -> Found:
    device = matches(r"^Device:(.+?) Mem=", file.text)
    factors = {"GB/sec": ("bandwidth", 1e9), "ms": ("step_time", 1e-3)}
    return _by_line(
        file, ROCM,
        lambda m: (
            {"operator": "copy", "mode": m[1], "shape": m[2], "device": device, "devices": 1},
            {factors[m[3]][0]: scaled(m[4], factors[m[3]][1])},
        ),
    )  # fmt: skip


def _nccl(file: Original) -> Found:
    """Out of place; the bus bandwidth, which can be compared with the links, is kept beside."""
    ranks = len(re.findall(r"^#\s+Rank\s+\d+", file.text, re.MULTILINE))
    device = matches(r"^#\s+Rank.*\] (.+)$", file.text)
    operator = re.sub(r"^nccl_", "", file.folders.stem)
    for i, line in enumerate(file.text.splitlines(), 1):
        if m := NCCL.match(line):
            yield file.run(
                f"line {i}",
                {
                    "operator": operator, "shape": f"{m[1]} bytes", "precision": precision(m[3]),
                    "devices": ranks or None, "device": device, "suite": "nccl-tests", "phase": "communication",
                },
                {"step_time": scaled(m[5], 1e-6), "bandwidth": scaled(m[6], 1e9)},
                more={"bus_bandwidth": scaled(m[7], 1e9), "in_place_seconds": scaled(m[8], 1e-6)},
            )  # fmt: skip


def _lines(file: Original) -> Found:
    device = matches(r'^Device \d+: "?([^"(\n]+)', file.text)
    for i, line in enumerate(file.text.splitlines(), 1):
        for pattern, factor in (
            (COPY, 1e9),
            (GPU_STREAM, 1e9),
            (STREAM, 1e6),
            (BANDWIDTH_SUM, 1e9),
        ):
            if found := pattern.match(line):
                operator = "stream" if pattern in (GPU_STREAM, STREAM) else "copy"
                dimensions = {
                    "operator": operator,
                    "mode": found[1],
                    "device": device,
                    "suite": "SuperBench",
                }
                yield file.run(f"line {i}", dimensions, {"bandwidth": scaled(found[2], factor)})


def _latency(file: Original) -> Found:
    times = [number(value) for _, value in LATENCY.findall(file.text)]
    known = sorted(value / 1e3 for value in times if value is not None)
    at = (
        {share: known[min(len(known) - 1, int(share / 100 * len(known)))] for share in (50, 90, 99)}
        if known
        else {}
    )
    metrics: dict[str, float | None] = {f"latency_p{share}": value for share, value in at.items()}
    if known:
        dimensions = {"operator": "dist-inference", "phase": "inference", "suite": "SuperBench"}
        yield file.run(
            "log", dimensions, {"step_time": median(known), **metrics}, more={"steps": len(known)}
        )


def _fio(file: Original) -> Found:
    values = parsed(file.text)
    jobs = values.get("jobs") if isinstance(values, dict) else None
    for job in jobs if isinstance(jobs, list) else []:
        for way in ("read", "write"):
            found = job.get(way) if isinstance(job, dict) else None
            if not isinstance(found, dict) or not number(found.get("bw_bytes")):
                continue
            latency = found.get("lat_ns")
            percent = latency.get("percentile") if isinstance(latency, dict) else None
            shares = percent if isinstance(percent, dict) else {}
            name = spelled(job.get("jobname"))
            yield file.run(
                f"{name}, {way}",
                {"operator": "disk", "mode": f"{name} {way}", "phase": "ingest", "suite": "fio"},
                {
                    "bandwidth": number(found.get("bw_bytes")), "throughput": number(found.get("iops")),
                    **{f"latency_p{s}": scaled(shares.get(f"{s}.000000"), 1e-9) for s in (50, 90, 99)},
                },
            )  # fmt: skip


def _trtexec(file: Original) -> Found:
    text = file.text
    mean = matches(r"Latency: min = .*?mean = ([\d.]+) ms", text)
    batch = whole(matches(r"Input inference shapes?: \w+=(\d+)x", text))
    queries = number(matches(r"Throughput: ([\d.]+) qps", text))
    kinds = matches(r"Precision: (\S+)", text).split("+")
    yield file.run(
        "log",
        {
            "model": matches(r"Model: \S*?([\w.-]+)\.onnx", text), "phase": "inference", "framework": "tensorrt",
            "device": matches(r"Selected Device: (.+)$", text), "devices": 1, "replica_batch": batch, "unit": "queries",
            "precision": kinds[-1].lower() if kinds else "", "suite": "trtexec", "effective_batch": batch,
        },
        {
            "step_time": scaled(mean, 1e-3), "throughput": queries,
            "latency_p50": scaled(matches(r"Latency: min = .*?median = ([\d.]+) ms", text), 1e-3),
            "latency_p99": scaled(matches(r"Latency: min = .*?percentile\(99%\) = ([\d.]+) ms", text), 1e-3),
        },
        failure="" if mean else f"no latency: {matches(r'(Timing trace has .*)$', text) or 'the log is cut off'}",
        more={"batch": batch},
    )  # fmt: skip


def _megatron(file: Original) -> Found:
    for m in MEGATRON.finditer(file.text):
        batch, seconds = int(m[3]), scaled(m[2], 1e-3)
        yield file.run(
            f"iteration {m[1]}",
            {
                "model": "gpt", "phase": "training", "framework": "megatron-deepspeed", "effective_batch": batch,
                "unit": "samples", "suite": "SuperBench",
            },
            {"step_time": seconds, "throughput": batch / seconds if seconds else None, "loss": number(m[4])},
        )  # fmt: skip


def _gemm(file: Original) -> Found:
    return _by_line(
        file, GEMM,
        lambda m: (
            {"operator": "gemm", "shape": f"m{m[1]} n{m[2]} k{m[3]}", "devices": 1},
            {"step_time": scaled(m[4], 1e-6), "flops": scaled(m[5], 1e12)},
        ),
    )  # fmt: skip


READERS: dict[str, Callable[[Original], Found]] = {
    "cuda": _cuda, "rocm": _rocm, "nccl": _nccl, "lines": _lines, "latency": _latency, "fio": _fio, "trtexec": _trtexec,
    "megatron": _megatron, "gemm": _gemm,
}  # fmt: skip
