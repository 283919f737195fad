"""What real batches cost a step: from memory and from a disk, warm and cold, with and without prefetching.

    STEPTIME_DATA=… python benchmarks/ingest.py                      # /dev/shm and the working folder
    STEPTIME_DATA=… python benchmarks/ingest.py /dev/shm $SCRATCH --workload cifar10-cnn --batch-size 32

All ways take turns, in random order, in one process with one thread, so that a busy machine is busy for all of them. A
ratio is to the same batch copied from host memory each time: Hodges-Lehmann centre and 95 % interval over rounds."""

from __future__ import annotations

import argparse
import contextlib
import random
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from overhead import centre, percent

from steptime import plugins, workloads
from steptime.core.case import Case
from steptime.data import tiers
from steptime.data.feeding import FedProgram
from steptime.data.feeding import prefetch as keep_ready
from steptime.data.ingest import Ingest

WARM_UP = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", nargs="*", default=["/dev/shm", "."])
    parser.add_argument("--workload", default="mnist-mlp")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=600)
    options = parser.parse_args()
    case = Case(workload=options.workload, batch_size=options.batch_size, threads=1)
    with contextlib.ExitStack() as closing:
        ways, told = steps(case, options.folders, closing)
        found = rounds(ways, options.rounds)
        show(found, {name: tell() for name, tell in told.items()})


def steps(
    case: Case, folders: list[str], closing: contextlib.ExitStack
) -> tuple[dict[str, Any], dict[str, Any]]:
    workload, framework = workloads.load(case.workload), plugins.load("frameworks", case.framework)
    work, samples = workload.build(case), workload.samples(case, "train")
    program = framework.lower(
        work, case
    )  # one for all: two of them differ by where their memory happens to lie
    ways: dict[str, Callable[[], Any]] = {
        "host": FedProgram(program, repeat(work.batch)).step,
        "device": program.step,
    }
    told: dict[str, Callable[[], dict[str, Any]]] = {}
    for folder in folders:
        kind = tiers.describe(folder)["kind"]
        for cache, prefetch in (
            (("warm", 0),) if kind == "dram" else (("warm", 0), ("cold", 0), ("cold", 2))
        ):
            ingest = Ingest(
                samples,
                Path(folder),
                replace(case, data="real", page_cache=cache, prefetch=prefetch),
            )
            name = f"{kind} {folder}, {cache}{', prefetched' if prefetch else ''}"
            batches = closing.enter_context(keep_ready(ingest.batches(), prefetch))
            ways[name], told[name] = FedProgram(program, batches).step, ingest.facts
            closing.callback(ingest.close)
    return ways, told


def rounds(ways: dict[str, Callable[[], Any]], count: int) -> dict[str, Any]:
    taken: dict[str, list[int]] = {name: [] for name in ways}
    for _ in range(count):
        for name in random.sample(list(ways), len(ways)):
            start = time.perf_counter_ns()
            ways[name]()
            taken[name].append(time.perf_counter_ns() - start)
    kept = {name: np.array(times[WARM_UP:]) for name, times in taken.items()}
    return {
        name: (times, centre(list(np.log(times / kept["host"])))) for name, times in kept.items()
    }


def show(found: dict[str, Any], told: dict[str, dict[str, Any]]) -> None:
    print(
        f"{'batches from':44}{'fast step':>12}{'against host':>30}   pages in memory, before and after"
    )
    for name, (times, ratio) in found.items():
        cache = told.get(name, {}).get("page_cache", {})
        shares = " … ".join(
            _share(cache[end]) for end in ("resident_before", "resident_after") if end in cache
        )
        print(f"{name:44}{np.percentile(times, 10) / 1e6:9.3f} ms{percent(ratio):>30}   {shares}")
    print(
        "A fast step is the tenth percentile: what the machine's other work does to a step is not in it."
    )


def _share(value: float | None) -> str:
    return "not told" if value is None else f"{value:.0%}"


if __name__ == "__main__":
    main()
