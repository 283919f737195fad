"""Eight questions about a GPU that decide how to measure it.

Run it where torch sees a CUDA device:
`python benchmarks/gpu_check.py [--seconds-of-trajectory 60]`. Parts that need fresh processes use
steptime itself. The numbers hold for this run on this machine."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pynvml
import torch

# Rows and columns of a matrix whose product fills the device.
LARGE = 8192
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
    driver = pynvml.nvmlSystemGetDriverVersion()
    print(f"# {torch.cuda.get_device_name(0)}, torch {torch.__version__}, driver {driver}")
    questions: dict[str, Callable[[], dict[str, Any]]] = {
        "1": check_events,
        "2": check_closure,
        "3": lambda: compare_processes(options.processes),
        "4": lambda: record_trajectory(handle, options.seconds_of_trajectory),
        "5": time_matrix_products,
        "6": lambda: measure_energy_period(handle),
        "7": compare_identical_cases,
        "8": lambda: count_clock_reasons(handle),
    }
    for digit, question in questions.items():
        if digit not in options.only:
            continue
        start = time.perf_counter()
        answer = question()
        seconds = time.perf_counter() - start
        print(f"({digit}) {json.dumps(answer)}  [{seconds:.0f} s]", flush=True)
        torch.cuda.empty_cache()


def make_event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)


def make_matrix(size: int) -> torch.Tensor:
    return torch.randn(size, size, device="cuda", dtype=torch.bfloat16)


def check_events() -> dict[str, Any]:
    """(1) What does an event cost the host, and how fine is its clock?"""
    pool = [make_event() for _ in range(2000)]
    torch.cuda.synchronize()
    costs = []
    for event in pool:
        start = time.perf_counter_ns()
        event.record()
        costs.append(time.perf_counter_ns() - start)
    torch.cuda.synchronize()
    gaps = sorted(a.elapsed_time(b) * 1e3 for a, b in itertools.pairwise(pool))
    differences = [round(b - a, 4) for a, b in itertools.pairwise(gaps) if b > a]
    return {
        "record_cost_us_median": statistics.median(costs) / 1e3,
        "back_to_back_us_least": gaps[0],
        "back_to_back_us_median": statistics.median(gaps),
        "smallest_difference_us": min(differences, default=None),
    }


def check_closure() -> dict[str, Any]:
    """(2) Do the clocks of device and host agree on a ResNet-50 training step?"""
    result = measure(RESNET, "single")["result"]
    return {
        "checks": result["each_process"][0]["checks"],
        "typical_ms": 1e3 * result["typical_time_seconds"]["value"],
    }


def compare_processes(count: int) -> dict[str, Any]:
    """(3) How far apart are fresh processes if clocks are free?"""
    lines = ["[constants]"]
    for setting in RESNET:
        name, value = setting.split("=")
        lines.append(f"{name} = {value if value.isdigit() else json.dumps(value)}")
    lines.append("[protocol]")
    lines.append(f"processes_least = {count}\nprocesses_most = {count}\nbudget_seconds = 900.0")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.toml"
        path.write_text("\n".join(lines) + "\n")
        result = run_steptime("run", str(path), "--json")["records"][0]["result"]
    medians = [process["typical_time_seconds"] for process in result["each_process"]]
    return {
        "processes": len(medians),
        "median_ms_least": 1e3 * min(medians),
        "median_ms_most": 1e3 * max(medians),
        "cv_percent": 100 * statistics.stdev(medians) / statistics.mean(medians),
        "grade": result["grade"],
        "flags": [flag["name"] for flag in result["flags"]],
    }


def record_trajectory(handle: Any, seconds: float) -> dict[str, Any]:
    """(4) When do clock and power settle under a large matrix product?"""
    a = make_matrix(LARGE)
    b = make_matrix(LARGE)
    out = torch.empty_like(a)
    torch.cuda.synchronize()
    # Start from rest.
    time.sleep(5)
    points = []
    start = time.perf_counter()
    while (now := time.perf_counter() - start) < seconds:
        for _ in range(40):
            torch.mm(a, b, out=out)
        torch.cuda.synchronize()
        elapsed = time.perf_counter() - start - now
        tflops = 40 * 2 * LARGE**3 / elapsed / 1e12
        points.append((now, tflops, clock(handle), power(handle), temperature(handle)))
    marks = [0, 0.5, 1, 2, 5, 10, 20, 40, 60, 90, 119]
    rows = []
    for mark in marks:
        if mark < seconds:
            nearest = min(points, key=lambda point: abs(point[0] - mark))
            rows.append([round(value, 1) for value in nearest])
    return {"seconds_tflops_mhz_watts_celsius": rows}


def time_matrix_products() -> dict[str, Any]:
    """(5) Small products with cold and hot cache and in a graph, against triton's do_bench and
    do_bench_cudagraph."""
    from triton.testing import do_bench, do_bench_cudagraph

    microseconds = {}
    for size in (256, 512, 1024, 2048, 4096):
        a = make_matrix(size)
        product = partial(torch.mm, a, make_matrix(size), out=torch.empty_like(a))
        row = {
            "hot": time_hot(product),
            "cold": time_cold(product),
            "graph": time_graph(product),
            "do_bench": 1e3 * do_bench(product, return_mode="median"),
        }
        # Some versions of triton fail here; the other columns stand without it.
        with contextlib.suppress(Exception):
            row["do_bench_cudagraph"] = 1e3 * do_bench_cudagraph(product, return_mode="median")
        microseconds[str(size)] = {name: round(value, 2) for name, value in row.items()}
    return {"microseconds": microseconds}


def time_hot(product: Callable[[], Any], count: int = 500) -> float:
    """Back to back: the launch or the computation, whichever is longer."""
    # The first calls also choose an algorithm.
    for _ in range(20):
        product()
    first = make_event()
    last = make_event()
    first.record()
    for _ in range(count):
        product()
    last.record()
    torch.cuda.synchronize()
    return first.elapsed_time(last) / count * 1e3


def time_cold(product: Callable[[], Any], count: int = 30) -> float:
    """The L2 cache is flushed before each product. A sleeping device hides the launches."""
    cache_bytes = torch.cuda.get_device_properties(0).L2_cache_size
    # Twice the size of the cache, so that nothing of the product stays in it.
    flush = torch.empty(2 * cache_bytes, dtype=torch.int8, device="cuda")
    pairs = [(make_event(), make_event()) for _ in range(count)]
    torch.cuda.synchronize()
    # The device sleeps while the host launches everything.
    torch.cuda._sleep(20_000_000)
    for first, last in pairs:
        flush.zero_()
        first.record()
        product()
        last.record()
    torch.cuda.synchronize()
    return statistics.median(first.elapsed_time(last) for first, last in pairs) * 1e3


def time_graph(product: Callable[[], Any], count: int = 100) -> float:
    # A library may allocate memory at its first call, which a capture forbids.
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        product()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            product()
    graph.replay()
    first = make_event()
    last = make_event()
    first.record()
    graph.replay()
    last.record()
    torch.cuda.synchronize()
    return first.elapsed_time(last) / count * 1e3


def measure_energy_period(handle: Any) -> dict[str, Any]:
    """(6) How often does the energy counter move?"""
    changes = []
    last = pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)
    start = time.perf_counter()
    while time.perf_counter() - start < 4:
        if (now := pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)) != last:
            changes.append(time.perf_counter())
            last = now
    gaps = [b - a for a, b in itertools.pairwise(changes)]
    return {"updates": len(changes), "period_ms_median": 1e3 * statistics.median(gaps)}


def compare_identical_cases() -> dict[str, Any]:
    """(7) Does a case differ from itself in an interleaved comparison?"""
    case = ",".join(RESNET)
    comparison = run_steptime("compare", case, case, "--preset", "quick", "--json")
    return {name: comparison[name] for name in ("verdict", "units", "remarks")}


def count_clock_reasons(handle: Any) -> dict[str, Any]:
    """(8) Which reasons does the driver give for its clock under full load?"""
    a = make_matrix(LARGE)
    b = make_matrix(LARGE)
    reasons = Counter[str]()
    for _ in range(60):
        for _ in range(100):
            torch.mm(a, b)
        reasons[hex(pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle))] += 1
        torch.cuda.synchronize()
    return {"reasons": reasons, "sm_clock_mhz": clock(handle), "power_w": power(handle)}


def clock(handle: Any) -> int:
    return int(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM))


def power(handle: Any) -> float:
    return float(pynvml.nvmlDeviceGetPowerUsage(handle)) / 1e3


def temperature(handle: Any) -> int:
    return int(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU))


def measure(settings: list[str], preset: str) -> dict[str, Any]:
    arguments = []
    for setting in settings:
        arguments.extend(["--set", setting])
    report = run_steptime("run", *arguments, "--preset", preset, "--json")
    record: dict[str, Any] = report["records"][0]
    return record


def run_steptime(*arguments: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "steptime", "--store", folder, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


if __name__ == "__main__":
    main()
