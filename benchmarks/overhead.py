"""What measuring costs: a stamp, a loop, a block's bookkeeping, the waiting parent, a monitor; beside two other ways.

    python benchmarks/overhead.py            # about a minute on a quiet machine
    python benchmarks/overhead.py --quick
    python benchmarks/overhead.py --json

Every way runs the same steps in turn with a bare loop, in random order. `takes` is the CPU time spent, `reports` the
wall time that the way itself gives, each against the bare loop: Hodges-Lehmann centre and 95 % interval over pairs."""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import random
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np

from steptime.core.case import Case
from steptime.core.protocol import preset
from steptime.engine.recorder import Recorder
from steptime.engine.timing import host_loop

Step = Callable[[], Any]
Run = Callable[[int], float]
"""Does so many steps and returns the seconds that it says they took."""
clock = time.perf_counter_ns
WATCHED_SECONDS = 0.4  # two looks of a monitor
UNIT_SECONDS = 0.006  # short, because a shared core changes its speed; long, because starting a loop is not its cost


def bare(step: Step) -> Run:
    def run(count: int) -> float:
        start = clock()
        for _ in repeat(None, count):
            step()
        return (clock() - start) / 1e9

    return run


def ours(step: Step) -> Run:
    view, loop = memoryview(bytearray(8 * 65_536)).cast("q"), host_loop(step, clock, 1)

    def run(count: int) -> float:
        start = clock()
        loop(view, range(count))
        return float(view[count - 1] - start) / 1e9

    return run


class Tracker:
    """In the style of optimum-benchmark's latency tracker: a context around each step, two clock calls, a list."""

    def __init__(self) -> None:
        self.latencies: list[float] = []

    def track(self) -> Tracker:
        return self

    def __enter__(self) -> None:
        self.start = time.perf_counter()

    def __exit__(self, *error: object) -> None:
        self.latencies.append(time.perf_counter() - self.start)


def tracker(step: Step) -> Run:
    def run(count: int) -> float:
        tracker = Tracker()
        for _ in repeat(None, count):
            with tracker.track():
                step()
        return sum(tracker.latencies)

    return run


def torch_timer(step: Step) -> Run:
    """One time for all the steps: single steps are not known."""
    from torch.utils.benchmark import Timer

    timer = Timer("step()", globals={"step": step})
    return lambda count: float(timer.timeit(count).raw_times[0])


WAYS: dict[str, Callable[[Step], Run]] = {
    "steptime": ours,
    "tracker style": tracker,
    "torch.utils.benchmark": torch_timer,
}


def spin(seconds: float) -> Step:
    """Always the same work, in C and on little memory: what is compared is the loop around it."""
    work = partial(hashlib.pbkdf2_hmac, "md5", b"", b"")
    return partial(work, max(1, round(20_000 * seconds / least_seconds(partial(work, 20_000)))))


def sweep(seconds: float) -> Step:
    """The same, but through memory: the loop finds its own data pushed out of the first cache."""
    return partial(
        hashlib.md5,
        bytes(round(1_000_000 * seconds / least_seconds(partial(hashlib.md5, bytes(1_000_000))))),
    )


def least_seconds(step: Step) -> float:
    return min(bare(step)(1) for _ in range(5))


STEPS: dict[str, tuple[Callable[[float], Step], float]] = {
    "20 µs": (spin, 20e-6),
    "150 µs": (spin, 150e-6),
    "150 µs, cold cache": (sweep, 150e-6),
    "10 ms": (spin, 10e-3),
}


def compare(one: Run, other: Run, count: int, pairs: int) -> dict[str, tuple[float, float, float]]:
    """Log ratios (a plain ratio of noisy times is above one on average) of `other` to `one`."""
    took, reported = [], []
    for _ in range(pairs):
        spent, said = {}, {}
        for run in random.sample([one, other], 2):
            start = time.thread_time_ns()
            said[run] = run(count)
            spent[run] = time.thread_time_ns() - start
        took.append(np.log(spent[other] / spent[one]))
        reported.append(np.log(said[other] / said[one]))
    return {"takes": centre(took), "reports": centre(reported)}


def centre(values: list[float]) -> tuple[float, float, float]:
    """Hodges-Lehmann with its signed-rank interval (normal approximation), as a share: 0.01 is one percent more."""
    count, series = len(values), np.array(values)
    walsh = np.sort(np.add.outer(series, series)[np.triu_indices(count)]) / 2
    reach = round(1.96 * np.sqrt(count * (count + 1) * (2 * count + 1) / 24))
    middle = len(walsh) // 2
    low, high = walsh[max(0, middle - reach)], walsh[min(len(walsh) - 1, middle + reach)]
    return tuple(float(np.expm1(value)) for value in (np.median(walsh), low, high))  # type: ignore[return-value]


def loops(pairs: int) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for label, (make, seconds) in STEPS.items():
        step, count = make(seconds), max(1, round(UNIT_SECONDS / seconds))
        few = pairs if seconds < UNIT_SECONDS else max(20, pairs // 4)
        found[label] = {
            name: compare(bare(step), way(step), count, few) for name, way in usable().items()
        }
    return found


def usable() -> dict[str, Callable[[Step], Run]]:
    have_torch = importlib.util.find_spec("torch") is not None
    return {name: way for name, way in WAYS.items() if have_torch or way is not torch_timer}


def stamp_costs() -> dict[str, dict[str, float]]:
    """Around nothing, alternated with the bare loop: what one step more in the record costs."""
    found, nothing = {}, bare(int)
    for name in ("steptime", "tracker style"):
        run, bare_ns, all_ns = WAYS[name](int), [], []
        for _ in range(41):
            bare_ns.append(2e6 * nothing(500))
            start = clock()
            run(500)
            all_ns.append((clock() - start) / 500)
        differences = [both - alone for both, alone in zip(all_ns, bare_ns, strict=True)]
        found[name] = {
            "least_ns": min(all_ns) - min(bare_ns),
            "median_ns": statistics.median(differences),
        }
    return found


def bookkeeping() -> dict[str, float]:
    """Between two blocks: every side channel read, the block written down."""
    program = type(
        "Nothing", (), {"timer": None, "wait": lambda self: None, "compilations": lambda self: 0}
    )()
    recorder = Recorder(program, host_loop(int, clock, 1), clock)
    recorder.start()
    for _ in range(2000):
        recorder.block(1)
    recorder.close()
    cost_ns = float(np.median(recorder.times_ns()))
    return {
        "median_ns": cost_ns,
        "share_of_a_block": cost_ns / (1e9 * preset("standard").block_seconds),
    }


def parent() -> dict[str, Any] | str:
    """CPU time of the process that waits while a worker measures."""
    try:
        from steptime.core.job import Job
        from steptime.run.local.launch import Launch
        from steptime.run.local.process import WorkerProcess
        from steptime.store.folder import FolderStore
        from steptime.store.journal import uuid7
    except ImportError as problem:
        return f"not available: {problem}"
    case = Case(workload="mnist-mlp", threads=1)
    job = Job(id=uuid7(), session=uuid7(), plan="", process=0, case=case, protocol=preset("quick"))
    with tempfile.TemporaryDirectory() as folder:
        worker = WorkerProcess(Launch((sys.executable,)), job, FolderStore(folder))
        with worker.supervised():
            start, before = time.perf_counter(), cpu_seconds()
            worker.wait()
            seconds, used = time.perf_counter() - start, cpu_seconds() - before
        attempt = worker.attempt()
    if attempt.measurement is None:
        return f"not available: {attempt.failure.reason if attempt.failure else 'no result'}"
    return {"waited_seconds": seconds, "cpu_seconds": used, "share": used / seconds}


def monitor(pairs: int) -> dict[str, tuple[float, float, float]]:
    """Steps with a monitor that looks five times a second, against the same steps while it is stopped, in turns. On a
    CPU that both must share, every look is in a step's way; else the system finds it another."""
    everywhere = os.sched_getaffinity(0)
    found = {}
    for place, cpus in (("on another CPU", everywhere), ("on the same CPU", {min(everywhere)})):
        os.sched_setaffinity(0, cpus)
        line = [
            sys.executable,
            "-P",
            "-m",
            "steptime.machine.monitor",
            str(os.getpid()),
            "0.2",
            "cpu",
        ]
        with subprocess.Popen(line, stdout=subprocess.PIPE) as watching:
            assert watching.stdout is not None
            watching.stdout.readline()  # it has started up
            found[place] = centre([watched_ratio(watching.pid) for _ in range(max(10, pairs // 8))])
            watching.kill()
        os.sched_setaffinity(0, everywhere)
    return found


def watched_ratio(watching: int) -> float:
    step, spent = spin(UNIT_SECONDS), {}
    for order in random.sample([signal.SIGCONT, signal.SIGSTOP], 2):
        os.kill(watching, order)
        spent[order] = bare(step)(round(WATCHED_SECONDS / UNIT_SECONDS))
    return float(np.log(spent[signal.SIGCONT] / spent[signal.SIGSTOP]))


def cpu_seconds() -> float:
    use = resource.getrusage(resource.RUSAGE_SELF)
    return use.ru_utime + use.ru_stime


def show(found: dict[str, Any]) -> None:
    print("A stamp, around nothing (least and median of 41 alternations)")
    for name, cost in found["stamp"].items():
        print(f"  {name:24}{cost['least_ns']:8.0f} ns {cost['median_ns']:8.0f} ns")
    block = found["block"]
    print(
        f"A block's bookkeeping: {block['median_ns'] / 1000:.1f} µs, {block['share_of_a_block']:.3%} of 50 ms"
    )
    print(f"\n  {'a step of':20}{'measured by':24}{'takes':>28}{'reports':>28}")
    for label, ways in found["loop"].items():
        for name, ratios in ways.items():
            print(
                f"  {label:20}{name:24}{percent(ratios['takes']):>28}{percent(ratios['reports']):>28}"
            )
    print(
        "  torch.utils.benchmark also takes two steps of warm-up each time; it reports without them."
    )
    waiting = found["parent"]
    if isinstance(waiting, dict):
        waiting = f"{waiting['share']:.3%} of one CPU over {waiting['waited_seconds']:.1f} s"
    print(f"\nThe parent while its worker measures: {waiting}")
    for place, interval in found["monitor"].items():
        print(f"Steps while a monitor looks five times a second, {place}: {percent(interval)}")


def percent(interval: tuple[float, float, float]) -> str:
    value, low, high = (100 * part for part in interval)
    return f"{value:+.2f} % ({low:+.2f} … {high:+.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="few pairs, to see that it works")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    pairs = 40 if options.quick else 400
    found = {
        "stamp": stamp_costs(),
        "block": bookkeeping(),
        "loop": loops(pairs),
        "parent": parent(),
    }
    found["monitor"] = monitor(pairs)
    print(json.dumps(found)) if options.json else show(found)


if __name__ == "__main__":
    main()
