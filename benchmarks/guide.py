"""How fast the guide answers: a store is made, indexed, queried, and used in Chromium.

    python benchmarks/guide.py                      # a million runs: several minutes
    python benchmarks/guide.py --runs 10000000      # answered from cells
    python benchmarks/guide.py --quick              # 20,000 runs, no other databases

Up to a million runs are written as files and read like any store; more are put into the index
directly. Times are CPU seconds of the process, the least of several repeats, so other work on the
machine hardly affects them. SQLite and PostgreSQL stand beside it, with all rows up to a million,
and with the cells from which the guide answers; both have an index for the narrow question."""

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
from typing import Any, NamedTuple
from uuid import UUID

from guide_browser import measure_in_chromium
from guide_databases import compare_databases

from steptime.index.cache import Cache
from steptime.index.cells import cell_hash
from steptime.index.index import Index
from steptime.index.query import from_url
from steptime.index.rows import COLUMNS
from steptime.index.table import TYPES
from steptime.index.workspace import Workspace
from steptime.store.folder import FolderStore
from steptime.store.versions import FORMAT
from steptime.web.explore_view import FACETS, explore_values

CONFIGURATIONS = 20_000
ROWS_IN_A_FILE = 20_000
# More runs are not written as files.
MOST_FILED = 1_000_000
QUESTIONS = {
    "broad": "",
    "grouped": "x=replica_batch&by=framework&phase=training",
    "narrow": "x=precision&model=resnet50&phase=training&framework=pytorch&device=H100",
}
MODELS = (
    "resnet50", "resnet152", "vgg16", "alexnet", "inception3", "mobilenet", "densenet121", "unet",
    "ssd", "yolo3", "bert-base", "bert-large", "gpt2", "gpt2-xl", "t5-base", "llama-8b",
    "llama-70b", "dlrm", "ncf", "wide-deep", "ptb-lstm", "transformer-xl", "vit-b16", "swin-t",
    "clip", "sam", "whisper", "wav2vec2", "tacotron2", "waveglow", "gnmt", "mask-rcnn",
    "retinanet", "efficientnet-b0", "efficientnet-b7", "lenet5", "mnist-mlp", "deepmnist",
    "cifar10-cnn", "stable-diffusion",
)  # fmt: skip
FRAMEWORKS = {
    "pytorch": ("2.5", "2.7", "2.11", "2.13"),
    "jax": ("0.4.38", "0.6.0", "0.8.1"),
    "tensorflow": ("1.15", "2.21"),
    "onnxruntime": ("1.20", "1.23"),
    "openvino": ("2025.4", "2026.1"),
    "mxnet": ("1.9",),
}
# Relative speeds.
DEVICES = {
    "H100": 9.0,
    "A100": 4.0,
    "V100": 1.5,
    "P100": 0.7,
    "MI300": 8.0,
    "Xeon": 0.05,
    "EPYC": 0.06,
}
# A normal deviation of 2 %, in SQL.
SPEED = "speed * (1 + 0.02 * sqrt(-2 * ln(random() + 1e-12)) * cos(6.2831853 * random()))"
# Column -> its value in SQL, from the speed `v` of a run.
GENERATED = {
    "throughput": "v",
    "throughput_low": "0.99 * v",
    "throughput_high": "1.01 * v",
    "power": "100 + 600 * random()",
    "step_time": "effective_batch / v",
    "source": "'generated'",
    "status": "'ok'",
    "plausible": "'yes'",
}
Row = dict[str, Any]


class Timed(NamedTuple):
    cpu: float
    wall: float


class Server(NamedTuple):
    name: str
    device: str
    interconnect: str


def configurations(count: int) -> list[Row]:
    """Consistent as real ones are: a server has one device, a version belongs to a framework."""
    rng = random.Random(0)
    servers = []
    for number in range(30):
        device = rng.choice(sorted(DEVICES))
        interconnect = rng.choice(["nvlink", "ib", "eth"])
        servers.append(Server(f"node{number:03}", device, interconnect))
    return [_configuration(rng, servers) for _ in range(count)]


def _configuration(rng: random.Random, servers: list[Server]) -> Row:
    server = rng.choice(servers)
    framework = rng.choice(sorted(FRAMEWORKS))
    version = rng.choice(FRAMEWORKS[framework])
    devices = rng.choice([1, 1, 1, 2, 4, 8, 16, 32])
    batch = 2 ** rng.randrange(11)
    precision = rng.choice(["fp32", "bf16", "fp16", "int8", "fp8"])
    model = rng.randrange(len(MODELS))
    # Later models are larger, several devices scale a little below their number, and small batches
    # do not fill a device.
    speed = 4000 / (1 + model) * DEVICES[server.device]
    speed *= devices**0.93 * min(batch, 64) / 64
    return {
        "model": MODELS[model],
        "phase": rng.choice(["training", "inference"]),
        "framework": framework,
        "framework_version": version,
        "mode": rng.choice(["eager", "compiled", "graph"]),
        "precision": precision,
        "device": server.device,
        "devices": devices,
        "nodes": max(1, devices // 8),
        "interconnect": server.interconnect,
        "replica_batch": batch,
        "effective_batch": batch * devices,
        "data": rng.choice(["synthetic", "imagenet", "ssd"]),
        "layout": rng.choice(["nchw", "nhwc"]),
        "optimizer": rng.choice(["sgd", "adam", "adamw"]),
        "threads": rng.choice([1, 8, 64]),
        "unit": "images",
        "server": server.name,
        "software": f"{framework} {version}",
        "suite": rng.choice(["core", "nightly", "release"]),
        "submitter": rng.choice(["a", "b", "c", "d"]),
        "speed": speed * rng.uniform(0.5, 2),
    }


def write_store(store: Path, count: int) -> None:
    """As `steptime import` writes it."""
    # Always the same store.
    rng = random.Random(1)
    made = configurations(min(CONFIGURATIONS, count))
    (store / "imports").mkdir(parents=True)
    (store / "STORE.json").write_text(json.dumps({"format": FORMAT}) + "\n")
    for first in range(0, count, ROWS_IN_A_FILE):
        original = sha256(str(first).encode()).hexdigest()
        with (store / "imports" / f"{original}.jsonl").open("w") as file:
            for number in range(first, min(count, first + ROWS_IN_A_FILE)):
                row = _imported_row(rng, rng.choice(made), original, number)
                file.write(json.dumps(row) + "\n")


def _imported_row(rng: random.Random, configuration: Row, original: str, number: int) -> Row:
    speed = configuration["speed"] * rng.gauss(1, 0.02)
    digest = sha256(f"{original} {number}".encode()).digest()
    metrics = {
        "throughput": speed,
        "throughput_low": 0.99 * speed,
        "throughput_high": 1.01 * speed,
        "step_time": configuration["effective_batch"] / speed,
        "power": rng.uniform(100, 700),
    }
    return {
        "id": str(UUID(bytes=digest[:16], version=5)),
        "source": "generated",
        "original": original,
        "file": "generated.jsonl",
        "location": f"row {number}",
        "started": f"2026-{number % 12 + 1:02}-{number % 28 + 1:02}T00:00:{number % 60:02}",
        "dimensions": {name: configuration[name] for name in configuration if name != "speed"},
        "metrics": metrics,
    }


def insert_rows(index: Index, count: int) -> None:
    """The same rows, made by DuckDB itself: to read ten million from files would take too long."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        for configuration in configurations(CONFIGURATIONS):
            file.write(json.dumps(configuration) + "\n")
        file.flush()
        create = """
            CREATE TEMP TABLE made AS
            SELECT row_number() OVER () - 1 AS number, * FROM read_json(?, sample_size = -1)
        """
        index.database.execute(create, [file.name])
    names = ", ".join(f'"{name}"' for name in COLUMNS)
    index.database.execute(f"""
        INSERT INTO runs
        SELECT id, started, place, {cell_hash()}, {names}
        FROM (
            SELECT
                CAST(uuidv7() AS VARCHAR) AS id,
                strftime(TIMESTAMP '2026-01-01' + to_seconds(i), '%Y-%m-%dT%H:%M:%S') AS started,
                NULL AS place,
                {", ".join(_generated_columns())}
            FROM (
                SELECT *, {SPEED} AS v
                FROM range({count}) AS numbers(i)
                JOIN made ON made.number = hash(i) % {CONFIGURATIONS}
            )
        )
    """)


def _generated_columns() -> Iterator[str]:
    configuration = configurations(1)[0]
    for name in COLUMNS:
        value = "NULL"
        if name in GENERATED:
            value = GENERATED[name]
        elif name in configuration:
            value = f'"{name}"'
        yield f'CAST({value} AS {TYPES[name]}) AS "{name}"'


def time_call(call: Callable[[], Any], repeats: int = 7) -> Timed:
    cpu_times = []
    wall_times = []
    for _ in range(repeats):
        cpu = time.process_time()
        wall = time.perf_counter()
        call()
        cpu_times.append(time.process_time() - cpu)
        wall_times.append(time.perf_counter() - wall)
    return Timed(min(cpu_times), min(wall_times))


def time_questions(index: Index) -> dict[str, dict[str, Timed]]:
    facets = list(FACETS[:12])
    times = {}
    for label, text in QUESTIONS.items():
        query = from_url(text)
        times[label] = {
            "chart": time_call(partial(index.points, query)),
            "12 facets": time_call(partial(index.facets, query, facets)),
            "mixing notice": time_call(partial(index.mixed_dimensions, query)),
            "all data of a page": time_call(partial(explore_values, index, query)),
        }
    return times


@contextmanager
def start_guide(store: Path) -> Iterator[tuple[str, int, float]]:
    """`steptime guide` as a process: its address, its number, and the seconds until it answers."""
    begin = time.monotonic()
    command = [sys.executable, "-m", "steptime", "--store", str(store), "guide", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        address = re.search(r"http://\S+", line)
        try:
            assert address, line
            yield address[0], process.pid, time.monotonic() - begin
        finally:
            process.terminate()


def format_memory(process: int) -> str:
    status = Path(f"/proc/{process}/status").read_text()
    kilobytes = dict(re.findall(r"^(Vm\w+):\s+(\d+)", status, re.MULTILINE))
    now = int(kilobytes["VmRSS"]) / 1000
    most = int(kilobytes["VmHWM"]) / 1000
    return f"{now:,.0f} MB, at most {most:,.0f} MB"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--quick", action="store_true", help="20,000 runs, no other databases")
    options = parser.parse_args()
    count = 20_000 if options.quick else options.runs
    with tempfile.TemporaryDirectory(prefix="steptime-guide-") as folder:
        os.environ["XDG_CACHE_HOME"] = str(Path(folder, "cache"))
        measure(Path(folder, "store"), count, quick=options.quick)


def measure(store: Path, count: int, *, quick: bool) -> None:
    cores = len(os.sched_getaffinity(0))
    machine = f"{cores} cores, {platform.machine()}, load {os.getloadavg()[0]:.1f}"
    print(f"{count:,} runs · {datetime.now(UTC):%Y-%m-%d} · {machine}")
    index = build_index(store, count)
    print(f"answered from {index_content(index)}\n")
    print("question   answer              CPU ms  wall ms")
    for label, answers in time_questions(index).items():
        for name, seconds in answers.items():
            cpu = 1000 * seconds.cpu
            wall = 1000 * seconds.wall
            print(f"{label:<10} {name:<18} {cpu:>7.1f} {wall:>8.1f}", flush=True)
    if not quick and count <= MOST_FILED:
        show_databases(index, cells=False)
    if not quick and index.has_cells:
        show_databases(index, cells=True)
    # The guide opens the published copy.
    index.database.close()
    with start_guide(store) as (address, process, seconds):
        memory = format_memory(process)
        print(f"\n`steptime guide` answers after {seconds:.1f} s from its cache; memory {memory}")
        in_browser = measure_in_chromium(address, process, 2 if quick else 4)
        for name, text in in_browser.items():
            print(f"{name}: {text}")
        print(f"memory after that: {format_memory(process)}")


def index_content(index: Index) -> str:
    if not index.has_cells:
        return "rows"
    ((count,),) = index.database.execute("SELECT count(*) FROM cells").fetchall()
    return f"{count:,} cells"


def show_databases(index: Index, *, cells: bool) -> None:
    print()
    for line in compare_databases(index, QUESTIONS, list(FACETS[:12]), cells=cells):
        print(line, flush=True)


def build_index(store: Path, count: int) -> Index:
    cache = Cache(str(store.resolve()))
    if count <= MOST_FILED:
        write_store(store, count)
        workspace = Workspace(FolderStore(store), cache)
        work = "read and indexed"
        seconds = time_call(workspace.refresh, repeats=1)
    else:
        (store / "imports").mkdir(parents=True)
        workspace = Workspace(FolderStore(store), cache)
        workspace.refresh()
        insert_rows(workspace.index, count)
        work = "cells made"
        seconds = time_call(workspace.index.summarise, repeats=1)
    print(f"{work} in {seconds.cpu:.1f} s CPU, {seconds.wall:.1f} s wall", flush=True)
    # As if the work had taken long: otherwise a small index is not published.
    cache.publish(workspace.index, worked_seconds=3600.0)
    size = sum(path.stat().st_size for path in cache.published_files())
    check = time_call(partial(check_for_changes, workspace))
    print(f"index {size / 1e6:,.0f} MB; a check for changes {1000 * check.cpu:.1f} ms CPU")
    return workspace.index


def check_for_changes(workspace: Workspace) -> None:
    workspace.expect_changes()
    workspace.refresh()


if __name__ == "__main__":
    main()
