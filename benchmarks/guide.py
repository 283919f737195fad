"""How quickly the guide answers: a store is made, indexed, asked, and used in Chromium.

    python benchmarks/guide.py                      # a million runs: several minutes
    python benchmarks/guide.py --runs 10000000      # answered by cells
    python benchmarks/guide.py --quick              # 20,000 runs, no other databases

Up to a million runs are written as files and read as any store is; beyond that they are put into the index. Times are
CPU seconds of the process, the least of several repeats: what else the machine does touches them little. Beside them
stand SQLite and PostgreSQL with all rows, up to a million, and with the cells that the guide answers by; both have an
index for the narrow question."""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

from guide_browser import in_chromium
from guide_sides import sides

from steptime.index.cache import Cache
from steptime.index.cells import cell_hash
from steptime.index.index import Index
from steptime.index.query import from_url
from steptime.index.rows import COLUMNS
from steptime.index.table import TYPES
from steptime.index.workspace import Workspace
from steptime.store.folder import FolderStore
from steptime.web.explore_view import FACETS, explore_values

CONFIGURATIONS, ROWS_IN_A_FILE, MOST_FILED = 20_000, 20_000, 1_000_000
QUESTIONS = {
    "broad": "",
    "grouped": "x=replica_batch&by=framework&phase=training",
    "narrow": "x=precision&model=resnet50&phase=training&framework=pytorch&device=H100",
}
MODELS = (
    "resnet50", "resnet152", "vgg16", "alexnet", "inception3", "mobilenet", "densenet121", "unet", "ssd", "yolo3",
    "bert-base", "bert-large", "gpt2", "gpt2-xl", "t5-base", "llama-8b", "llama-70b", "dlrm", "ncf", "wide-deep",
    "ptb-lstm", "transformer-xl", "vit-b16", "swin-t", "clip", "sam", "whisper", "wav2vec2", "tacotron2", "waveglow",
    "gnmt", "mask-rcnn", "retinanet", "efficientnet-b0", "efficientnet-b7", "lenet5", "mnist-mlp", "deepmnist",
    "cifar10-cnn", "stable-diffusion",
)  # fmt: skip
FRAMEWORKS = {
    "pytorch": ("2.5", "2.7", "2.11", "2.13"), "jax": ("0.4.38", "0.6.0", "0.8.1"), "tensorflow": ("1.15", "2.21"),
    "onnxruntime": ("1.20", "1.23"), "openvino": ("2025.4", "2026.1"), "mxnet": ("1.9",),
}  # fmt: skip
DEVICES = {
    "H100": 9.0,
    "A100": 4.0,
    "V100": 1.5,
    "P100": 0.7,
    "MI300": 8.0,
    "Xeon": 0.05,
    "EPYC": 0.06,
}
SPEED = "speed * (1 + 0.02 * sqrt(-2 * ln(random() + 1e-12)) * cos(6.2831853 * random()))"
GIVEN = {
    "throughput": "v", "throughput_low": "0.99 * v", "throughput_high": "1.01 * v", "power": "100 + 600 * random()",
    "step_time": "effective_batch / v", "source": "'generated'", "status": "'ok'", "plausible": "'yes'",
}  # fmt: skip
Timed = tuple[float, float]  # CPU and wall seconds


def configurations(count: int) -> list[dict[str, Any]]:
    """They hang together as real ones do: a server has its device, software its framework."""
    rng = random.Random(0)
    servers = [
        (f"node{i:03}", rng.choice(sorted(DEVICES)), rng.choice(["nvlink", "ib", "eth"]))
        for i in range(30)
    ]
    return [_configuration(rng, servers) for _ in range(count)]


def _configuration(rng: random.Random, servers: list[tuple[str, str, str]]) -> dict[str, Any]:
    server, device, wire = rng.choice(servers)
    framework = rng.choice(sorted(FRAMEWORKS))
    version, devices = rng.choice(FRAMEWORKS[framework]), rng.choice([1, 1, 1, 2, 4, 8, 16, 32])
    batch, precision = 2 ** rng.randrange(11), rng.choice(["fp32", "bf16", "fp16", "int8", "fp8"])
    number = rng.randrange(len(MODELS))
    speed = 4000 / (1 + number) * DEVICES[device] * devices**0.93 * min(batch, 64) / 64
    return {
        "model": MODELS[number], "phase": rng.choice(["training", "inference"]), "framework": framework,
        "framework_version": version, "mode": rng.choice(["eager", "compiled", "graph"]), "precision": precision,
        "device": device, "devices": devices, "nodes": max(1, devices // 8), "interconnect": wire,
        "replica_batch": batch, "effective_batch": batch * devices,
        "data": rng.choice(["synthetic", "imagenet", "ssd"]), "layout": rng.choice(["nchw", "nhwc"]),
        "optimizer": rng.choice(["sgd", "adam", "adamw"]), "threads": rng.choice([1, 8, 64]), "unit": "images",
        "server": server, "software": f"{framework} {version}", "suite": rng.choice(["core", "nightly", "release"]),
        "submitter": rng.choice(["a", "b", "c", "d"]), "speed": speed * rng.uniform(0.5, 2),
    }  # fmt: skip


def filed(store: Path, count: int) -> None:
    """As `steptime import` leaves them."""
    rng, made = random.Random(1), configurations(min(CONFIGURATIONS, count))
    words = [
        json.dumps({name: value for name, value in one.items() if name != "speed"}) for one in made
    ]
    (store / "imports").mkdir(parents=True)
    (store / "STORE.json").write_text('{"format": 1}\n')
    for first in range(0, count, ROWS_IN_A_FILE):
        original = sha256(str(first).encode()).hexdigest()
        with (store / "imports" / f"{original}.jsonl").open("w") as file:
            for number in range(first, min(count, first + ROWS_IN_A_FILE)):
                which = rng.randrange(len(made))
                speed = made[which]["speed"] * rng.gauss(1, 0.02)
                metrics = {
                    "throughput": speed,
                    "throughput_low": 0.99 * speed,
                    "throughput_high": 1.01 * speed,
                }
                metrics |= {
                    "step_time": made[which]["effective_batch"] / speed,
                    "power": rng.uniform(100, 700),
                }
                name = UUID(bytes=sha256(f"{original} {number}".encode()).digest()[:16], version=5)
                common = f'"id": "{name}", "source": "generated", "original": "{original}", "place": "row {number}"'
                moment = f"2026-{number % 12 + 1:02}-{number % 28 + 1:02}T00:00:{number % 60:02}"
                rest = f'"started": "{moment}", "dimensions": {words[which]}, "metrics": {json.dumps(metrics)}'
                file.write(f"{{{common}, {rest}}}\n")


def put(index: Index, count: int) -> None:
    """The same rows by DuckDB itself: reading files of ten millions would take longer than asking them."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.writelines(json.dumps(one) + "\n" for one in configurations(CONFIGURATIONS))
        file.flush()
        known = "SELECT row_number() OVER () - 1 AS number, * FROM read_json(?, sample_size = -1)"
        index.database.execute(f"CREATE TEMP TABLE made AS {known}", [file.name])
    told = configurations(1)[0]
    columns = [f'CAST({_given(name, told)} AS {TYPES[name]}) AS "{name}"' for name in COLUMNS]
    started = "strftime(TIMESTAMP '2026-01-01' + to_seconds(i), '%Y-%m-%dT%H:%M:%S')"
    which = f"JOIN made ON made.number = hash(i) % {CONFIGURATIONS}"
    rows = f"SELECT *, {SPEED} AS v FROM range({count}) AS numbers(i) {which}"
    own = f"CAST(uuidv7() AS VARCHAR) AS id, {started} AS started, NULL AS place"
    table = f"SELECT {own}, {', '.join(columns)} FROM ({rows})"
    named = ", ".join(f'"{name}"' for name in COLUMNS)
    index.database.execute(
        f"INSERT INTO runs SELECT id, started, place, {cell_hash()}, {named} FROM ({table})"
    )


def _given(name: str, told: dict[str, Any]) -> str:
    return GIVEN.get(name) or (f'"{name}"' if name in told else "NULL")


def timed(ask: Callable[[], Any], repeats: int = 7) -> Timed:
    found = []
    for _ in range(repeats):
        cpu, wall = time.process_time(), time.perf_counter()
        ask()
        found.append((time.process_time() - cpu, time.perf_counter() - wall))
    return min(cpu for cpu, _ in found), min(wall for _, wall in found)


def asked(index: Index) -> dict[str, dict[str, Timed]]:
    names = list(FACETS[:12])
    found = {}
    for word, text in QUESTIONS.items():
        query = from_url(text)
        found[word] = {
            "chart": timed(partial(index.points, query)),
            "12 facets": timed(partial(index.facets, query, names)),
            "mixing notice": timed(partial(index.mixed, query)),
            "whole page's data": timed(partial(explore_values, index, query)),
        }
    return found


@contextmanager
def served(store: Path) -> Iterator[tuple[str, int, float]]:
    """`steptime guide` as a process: its address, its number, and how long it took to be there."""
    began = time.monotonic()
    command = [sys.executable, "-m", "steptime", "--store", str(store), "guide", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline() if process.stdout else ""
        address = re.search(r"http://\S+", line)
        try:
            assert address, line
            yield address[0], process.pid, time.monotonic() - began
        finally:
            process.terminate()


def memory(process: int) -> str:
    text = Path(f"/proc/{process}/status").read_text()
    now, most = (
        int(found[1]) / 1000
        for word in ("VmRSS", "VmHWM")
        if (found := re.search(rf"{word}:\s+(\d+)", text))
    )
    return f"{now:,.0f} MB, at most {most:,.0f} MB"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--quick", action="store_true", help="20,000 runs, no other databases")
    words = parser.parse_args()
    count = 20_000 if words.quick else words.runs
    with tempfile.TemporaryDirectory(prefix="steptime-guide-") as folder:
        os.environ["XDG_CACHE_HOME"] = str(Path(folder, "cache"))
        measure(Path(folder, "store"), count, quick=words.quick)


def measure(store: Path, count: int, *, quick: bool) -> None:
    machine = (
        f"{len(os.sched_getaffinity(0))} cores, {platform.machine()}, load {os.getloadavg()[0]:.1f}"
    )
    print(f"{count:,} runs · {datetime.now(UTC):%Y-%m-%d} · {machine}")
    index = opened(store, count)
    cells = (
        index.database.execute("SELECT count(*) FROM cells").fetchall()[0][0]
        if index.has_cells
        else 0
    )
    print(
        f"answered by {f'{cells:,} cells' if cells else 'rows'}\n\nquestion   answer              CPU ms  wall ms"
    )
    for word, answers in asked(index).items():
        for name, (cpu, wall) in answers.items():
            print(f"{word:<10} {name:<18} {1000 * cpu:>7.1f} {1000 * wall:>8.1f}", flush=True)
    for kind in [] if quick else [False] * (count <= MOST_FILED) + [True] * index.has_cells:
        print()
        for line in sides(index, QUESTIONS, list(FACETS[:12]), cells=kind):
            print(line, flush=True)
    index.database.close()
    with served(store) as (address, process, seconds):
        print(
            f"\n`steptime guide` answers after {seconds:.1f} s from its cache; memory {memory(process)}"
        )
        for name, told in in_chromium(address, process, 2 if quick else 4).items():
            print(f"{name}: {told}")
        print(f"memory after that: {memory(process)}")


def opened(store: Path, count: int) -> Index:
    cache = Cache(str(store.resolve()))
    if count <= MOST_FILED:
        filed(store, count)
        what, cpu, wall = "read and indexed", time.process_time(), time.perf_counter()
        workspace = Workspace(FolderStore(store), cache)
        workspace.refresh()
    else:
        (store / "imports").mkdir(parents=True)
        workspace = Workspace(FolderStore(store), cache)
        workspace.refresh()
        put(workspace.index, count)
        what, cpu, wall = "cells made", time.process_time(), time.perf_counter()
        workspace.index.summarise()
    print(
        f"{what} in {time.process_time() - cpu:.1f} s CPU, {time.perf_counter() - wall:.1f} s wall",
        flush=True,
    )
    cache.publish(workspace.index, worked_seconds=3600.0)
    size = sum(path.stat().st_size for path in cache.published())
    look = timed(lambda: (workspace.expect_changes(), workspace.refresh()))
    print(f"index {size / 1e6:,.0f} MB; a look for news {1000 * look[0]:.1f} ms CPU")
    return workspace.index


if __name__ == "__main__":
    main()
