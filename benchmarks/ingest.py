"""What real batches cost a step: from memory and from a disk, warm and cold, with prefetching.

    STEPTIME_DATA=… python benchmarks/ingest.py                  # /dev/shm and the working folder
    STEPTIME_DATA=… python benchmarks/ingest.py /dev/shm $SCRATCH --workload cifar10-cnn

All sources alternate, in random order, in one process with one thread, so that a busy machine is
busy for all of them. A ratio is to the same batch copied from host memory each time: Hodges-Lehmann
centre and 95 % interval over rounds."""

from __future__ import annotations

import argparse
import contextlib
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from overhead import Interval, centre, percent

from steptime import plugins, workloads
from steptime.core.case import Case
from steptime.data import tiers
from steptime.data.feeding import FedProgram
from steptime.data.feeding import prefetch as keep_ready
from steptime.data.ingest import Ingest

WARM_UP = 20
# Page cache and batches that are prefetched. Memory is never cold.
ON_MEMORY = (("warm", 0),)
ON_DISK = (("warm", 0), ("cold", 0), ("cold", 2))


@dataclass(frozen=True)
class Source:
    step: Callable[[], Any]
    ingest: Ingest | None = None


class Timing(NamedTuple):
    times_ns: Any
    ratio: Interval  # to batches from host memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", nargs="*", default=["/dev/shm", "."])
    parser.add_argument("--workload", default="mnist-mlp")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=600)
    options = parser.parse_args()
    case = Case(workload=options.workload, batch_size=options.batch_size, threads=1)
    with contextlib.ExitStack() as closing:
        sources = open_sources(case, options.folders, closing)
        show(sources, run_rounds(sources, options.rounds))


def open_sources(
    case: Case, folders: list[str], closing: contextlib.ExitStack
) -> dict[str, Source]:
    workload = workloads.load(case.workload)
    work = workload.build(case)
    samples = workload.samples(case, "train")
    # One program for all sources: two programs differ by where their memory happens to lie.
    program = plugins.load("frameworks", case.framework).lower(work, case)
    sources = {
        "host": Source(FedProgram(program, repeat(work.batch)).step),
        "device": Source(program.step),
    }
    for folder in folders:
        kind = tiers.describe(folder)["kind"]
        variants = ON_MEMORY if kind == "dram" else ON_DISK
        for cache, prefetch in variants:
            source_case = replace(case, data="real", page_cache=cache, prefetch=prefetch)
            ingest = Ingest(samples, Path(folder), source_case)
            closing.callback(ingest.close)
            batches = closing.enter_context(keep_ready(ingest.batches(), prefetch))
            name = f"{kind} {folder}, {cache}"
            if prefetch:
                name += ", prefetched"
            sources[name] = Source(FedProgram(program, batches).step, ingest)
    return sources


def run_rounds(sources: dict[str, Source], count: int) -> dict[str, Timing]:
    times: dict[str, list[int]] = {name: [] for name in sources}
    for _ in range(count):
        for name in random.sample(list(sources), len(sources)):
            start = time.perf_counter_ns()
            sources[name].step()
            times[name].append(time.perf_counter_ns() - start)
    host_times = np.array(times["host"][WARM_UP:])
    timings = {}
    for name, source_times in times.items():
        warm_times = np.array(source_times[WARM_UP:])
        timings[name] = Timing(warm_times, centre(list(np.log(warm_times / host_times))))
    return timings


def show(sources: dict[str, Source], timings: dict[str, Timing]) -> None:
    print(
        f"{'batches from':44}{'fast step':>12}{'against host':>30}"
        "   pages in memory, before and after"
    )
    for name, timing in timings.items():
        milliseconds = np.percentile(timing.times_ns, 10) / 1e6
        shares = resident_shares(sources[name].ingest)
        print(f"{name:44}{milliseconds:9.3f} ms{percent(timing.ratio):>30}   {shares}")
    print("A fast step is the tenth percentile, so other work on the machine hardly affects it.")


def resident_shares(ingest: Ingest | None) -> str:
    if ingest is None:
        return ""
    cache = ingest.facts()["page_cache"]
    before = _share(cache["resident_before"])
    after = _share(cache["resident_after"])
    return f"{before} … {after}"


def _share(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.0%}"


if __name__ == "__main__":
    main()
