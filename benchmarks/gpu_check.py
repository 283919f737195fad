"""Eight questions about a GPU that decide how it must be measured; prints the answers that METHOD.md quotes.

Run where torch sees a CUDA device: `python benchmarks/gpu_check.py [--seconds-of-trajectory 60]`. The parts that need
fresh processes go through steptime itself. Numbers are of this one run on this one machine."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import pynvml
import torch

RESNET = [
    "workload=resnet50",
    "phase=training",
    "batch_size=256",
    "precision=bf16",
    "layout=nhwc",
    "device=cuda:0",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds-of-trajectory", type=float, default=60)
    parser.add_argument("--processes", type=int, default=12)
    parser.add_argument("--only", default="12345678", help="digits of the questions to answer")
    options = parser.parse_args()
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    print(
        f"# {torch.cuda.get_device_name(0)}, torch {torch.__version__}, driver {pynvml.nvmlSystemGetDriverVersion()}"
    )
    questions: dict[str, Callable[[], dict[str, Any]]] = {
        "1": events,
        "2": closure,
        "3": lambda: between_processes(options.processes),
        "4": lambda: trajectory(handle, options.seconds_of_trajectory),
        "5": matrix_products,
        "6": lambda: energy_period(handle),
        "7": identical_pairs,
        "8": lambda: throttle_bits(handle),
    }
    for digit, question in questions.items():
        if digit in options.only:
            start = time.perf_counter()
            answer = question()
            print(
                f"({digit}) {json.dumps(answer)}  [{time.perf_counter() - start:.0f} s]", flush=True
            )
            torch.cuda.empty_cache()


def events() -> dict[str, Any]:
    """(1) What does an event cost the host, and how fine is its clock?"""
    pool = [torch.cuda.Event(enable_timing=True) for _ in range(2000)]
    torch.cuda.synchronize()
    costs = []
    for event in pool:
        start = time.perf_counter_ns()
        event.record()
        costs.append(time.perf_counter_ns() - start)
    torch.cuda.synchronize()
    gaps = sorted(a.elapsed_time(b) * 1e3 for a, b in itertools.pairwise(pool))
    steps = sorted({round(b - a, 4) for a, b in itertools.pairwise(gaps) if b > a})
    return {
        "record_cost_us_median": statistics.median(costs) / 1e3,
        "back_to_back_us_least": gaps[0],
        "back_to_back_us_median": statistics.median(gaps),
        "smallest_difference_us": steps[0] if steps else None,
    }


def closure() -> dict[str, Any]:
    """(2) Do the device's clock and the host's agree about a ResNet-50 training step?"""
    result = measure(RESNET, "single")["result"]
    return {
        "checks": result["each_process"][0]["checks"],
        "typical_ms": 1e3 * result["typical_time_seconds"]["value"],
    }


def between_processes(count: int) -> dict[str, Any]:
    """(3) How far are fresh processes apart, clocks free?"""
    constants = "\n".join(
        f"{name} = {value if value.isdigit() else json.dumps(value)}"
        for name, value in (pair.split("=") for pair in RESNET)
    )
    protocol = f"processes_least = {count}\nprocesses_most = {count}\nbudget_seconds = 900.0"
    text = f"[constants]\n{constants}\n[protocol]\n{protocol}\n"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "plan.toml")
        with open(path, "w") as file:
            file.write(text)
        result = steptime("run", path, "--json")["records"][0]["result"]
    medians = [process["typical_time_seconds"] for process in result["each_process"]]
    return {
        "processes": len(medians),
        "median_ms_least": 1e3 * min(medians),
        "median_ms_most": 1e3 * max(medians),
        "cv_percent": 100 * statistics.stdev(medians) / statistics.mean(medians),
        "grade": result["grade"],
        "flags": [flag["name"] for flag in result["flags"]],
    }


def trajectory(handle: Any, seconds: float) -> dict[str, Any]:
    """(4) When do clock and power settle under a large matrix product?"""
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out = torch.empty_like(a)
    torch.cuda.synchronize()
    time.sleep(5)  # from rest
    points, start = [], time.perf_counter()
    while (now := time.perf_counter() - start) < seconds:
        for _ in range(40):
            torch.mm(a, b, out=out)
        torch.cuda.synchronize()
        rate = 40 * 2 * 8192**3 / (time.perf_counter() - start - now) / 1e12
        points.append(
            (
                now,
                rate,
                clock(handle),
                pynvml.nvmlDeviceGetPowerUsage(handle) / 1e3,
                temperature(handle),
            )
        )
    marks = [0, 0.5, 1, 2, 5, 10, 20, 40, 60, 90, 119]
    rows = [min(points, key=lambda point: abs(point[0] - mark)) for mark in marks if mark < seconds]
    return {
        "seconds_tflops_mhz_watts_celsius": [[round(value, 1) for value in row] for row in rows]
    }


def matrix_products() -> dict[str, Any]:
    """(5) Cold, hot and graph times of small products against triton's do_bench and do_bench_cudagraph."""
    from triton.testing import do_bench, do_bench_cudagraph

    found = {}
    for size in (256, 512, 1024, 2048, 4096):
        a, b = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        out = torch.empty_like(a)

        def product(a: Any = a, b: Any = b, out: Any = out) -> Any:
            return torch.mm(a, b, out=out)

        row = {"hot": hot(product), "cold": cold(product), "graph": replayed(product)}
        row["do_bench"] = 1e3 * do_bench(product, return_mode="median")
        with contextlib.suppress(Exception):
            row["do_bench_cudagraph"] = 1e3 * do_bench_cudagraph(product, return_mode="median")
        found[str(size)] = {name: round(value, 2) for name, value in row.items()}
    return {"microseconds": found}


def hot(product: Callable[[], Any], count: int = 500) -> float:
    """Back to back: whichever is longer, launching or computing."""
    for _ in range(20):
        product()
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    for _ in range(count):
        product()
    last.record()
    torch.cuda.synchronize()
    return first.elapsed_time(last) / count * 1e3


def cold(product: Callable[[], Any], count: int = 30) -> float:
    """The second-level cache flushed before each, launches hidden behind a sleeping device."""
    flush = torch.empty(
        2 * torch.cuda.get_device_properties(0).L2_cache_size, dtype=torch.int8, device="cuda"
    )
    pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(count)]
    torch.cuda.synchronize()
    torch.cuda._sleep(20_000_000)
    for first, last in pairs:
        flush.zero_()
        first.record()
        product()
        last.record()
    torch.cuda.synchronize()
    return statistics.median(first.elapsed_time(last) for first, last in pairs) * 1e3


def replayed(product: Callable[[], Any], count: int = 100) -> float:
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        product()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            product()
    graph.replay()
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    graph.replay()
    last.record()
    torch.cuda.synchronize()
    return first.elapsed_time(last) / count * 1e3


def energy_period(handle: Any) -> dict[str, Any]:
    """(6) How often does the energy counter move?"""
    changes, last, start = (
        [],
        pynvml.nvmlDeviceGetTotalEnergyConsumption(handle),
        time.perf_counter(),
    )
    while time.perf_counter() - start < 4:
        if (now := pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)) != last:
            changes.append(time.perf_counter())
            last = now
    gaps = [b - a for a, b in itertools.pairwise(changes)]
    return {"updates": len(changes), "period_ms_median": 1e3 * statistics.median(gaps)}


def identical_pairs() -> dict[str, Any]:
    """(7) A case against itself: resident pairs taking turns."""
    case = ",".join(RESNET)
    answer = steptime("compare", case, case, "--preset", "quick", "--json")
    return {name: answer[name] for name in ("verdict", "units", "remarks")}


def throttle_bits(handle: Any) -> dict[str, Any]:
    """(8) Which reasons does the driver give for its clock under full load?"""
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    seen: dict[str, int] = {}
    for _ in range(60):
        for _ in range(100):
            torch.mm(a, b)
        bits = pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
        seen[hex(bits)] = seen.get(hex(bits), 0) + 1
        torch.cuda.synchronize()
    return {
        "reasons": seen,
        "sm_clock_mhz": clock(handle),
        "power_w": pynvml.nvmlDeviceGetPowerUsage(handle) / 1e3,
    }


def clock(handle: Any) -> int:
    return int(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM))


def temperature(handle: Any) -> int:
    return int(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU))


def measure(settings: list[str], profile: str) -> dict[str, Any]:
    words = [word for setting in settings for word in ("--set", setting)]
    record: dict[str, Any] = steptime("run", *words, "--preset", profile, "--json")["records"][0]
    return record


def steptime(*words: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "steptime", "--store", folder, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


if __name__ == "__main__":
    main()
