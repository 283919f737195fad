"""What measuring costs: a timestamp, a loop, the bookkeeping of a block, the parent, a monitor.

    python benchmarks/overhead.py            # about a minute on a quiet machine
    python benchmarks/overhead.py --quick
    python benchmarks/overhead.py --json

Two other methods stand beside it. Every method alternates with a bare loop over the same steps, in
random order. `takes` is the CPU time spent, `reports` the wall time that the method itself gives,
each against the bare loop: Hodges-Lehmann centre and 95 % interval over pairs."""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
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
# Runs so many steps and returns the seconds that it reports for them.
Run = Callable[[int], float]
# Centre and interval of a ratio, less one: 0.01 is one percent more.
Interval = tuple[float, float, float]
clock = time.perf_counter_ns
# Two readings of a monitor.
MONITORED_SECONDS = 0.4
# Short, because a shared core changes its speed. Long, because the start of a loop is not its cost.
UNIT_SECONDS = 0.006
# Around nothing: steps of one loop, and loops.
STAMPED_STEPS = 500
ALTERNATIONS = 41
# Threads of the process during the bookkeeping of a block.
THREADS = (1, 4, 16, 200)


def bare_loop(step: Step) -> Run:
    def run(count: int) -> float:
        start = clock()
        for _ in repeat(None, count):
            step()
        return (clock() - start) / 1e9

    return run


def steptime_loop(step: Step) -> Run:
    # Room for the timestamps, allocated before the clock starts.
    view = memoryview(bytearray(8 * 65_536)).cast("q")
    loop = host_loop(step, clock, 1)

    def run(count: int) -> float:
        start = clock()
        loop(view, range(count))
        return float(view[count - 1] - start) / 1e9

    return run


class Tracker:
    """In the style of optimum-benchmark's latency tracker: a context around each step, two calls of
    the clock, a list."""

    def __init__(self) -> None:
        self.latencies: list[float] = []

    def track(self) -> Tracker:
        return self

    def __enter__(self) -> None:
        self.start = time.perf_counter()

    def __exit__(self, *error: object) -> None:
        self.latencies.append(time.perf_counter() - self.start)


def tracker_loop(step: Step) -> Run:
    def run(count: int) -> float:
        tracker = Tracker()
        for _ in repeat(None, count):
            with tracker.track():
                step()
        return sum(tracker.latencies)

    return run


def torch_timer_loop(step: Step) -> Run:
    """One time for all steps; it does not report single steps."""
    from torch.utils.benchmark import Timer

    timer = Timer("step()", globals={"step": step})
    return lambda count: float(timer.timeit(count).raw_times[0])


METHODS: dict[str, Callable[[Step], Run]] = {
    "steptime": steptime_loop,
    "tracker style": tracker_loop,
    "torch.utils.benchmark": torch_timer_loop,
}


def make_compute_step(seconds: float) -> Step:
    """Always the same work, in C and on little memory, so that only the loops differ."""
    work = partial(hashlib.pbkdf2_hmac, "md5", b"", b"")
    rounds = 20_000
    seconds_per_round = least_seconds(partial(work, rounds)) / rounds
    return partial(work, max(1, round(seconds / seconds_per_round)))


def make_memory_step(seconds: float) -> Step:
    """The same, but through memory: it pushes the data of the loop out of the first cache."""
    size = 1_000_000
    seconds_per_byte = least_seconds(partial(hashlib.md5, bytes(size))) / size
    return partial(hashlib.md5, bytes(round(seconds / seconds_per_byte)))


def least_seconds(step: Step) -> float:
    return min(bare_loop(step)(1) for _ in range(5))


STEPS: dict[str, tuple[Callable[[float], Step], float]] = {
    "20 µs": (make_compute_step, 20e-6),
    "150 µs": (make_compute_step, 150e-6),
    "150 µs, cold cache": (make_memory_step, 150e-6),
    "10 ms": (make_compute_step, 10e-3),
}


def compare(base: Run, other: Run, count: int, pairs: int) -> dict[str, Interval]:
    """Ratios of `other` to `base`, as logarithms: the mean ratio of noisy times is above one."""
    spent_ratios = []
    reported_ratios = []
    for _ in range(pairs):
        spent = {}
        reported = {}
        # In random order, so that a drift of the machine favours neither.
        for run in random.sample([base, other], 2):
            start = time.thread_time_ns()
            reported[run] = run(count)
            spent[run] = time.thread_time_ns() - start
        spent_ratios.append(np.log(spent[other] / spent[base]))
        reported_ratios.append(np.log(reported[other] / reported[base]))
    return {"takes": centre(spent_ratios), "reports": centre(reported_ratios)}


def centre(logarithms: list[float]) -> Interval:
    """Hodges-Lehmann with its signed-rank interval (normal approximation)."""
    count = len(logarithms)
    series = np.array(logarithms)
    sums = np.add.outer(series, series)[np.triu_indices(count)]
    walsh = np.sort(sums) / 2
    reach = round(1.96 * np.sqrt(count * (count + 1) * (2 * count + 1) / 24))
    middle = len(walsh) // 2
    low = walsh[max(0, middle - reach)]
    high = walsh[min(len(walsh) - 1, middle + reach)]
    return float(np.expm1(np.median(walsh))), float(np.expm1(low)), float(np.expm1(high))


def measure_loops(pairs: int) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for label, (make_step, seconds) in STEPS.items():
        step = make_step(seconds)
        count = max(1, round(UNIT_SECONDS / seconds))
        # Long steps need fewer pairs.
        pairs_of_step = pairs if seconds < UNIT_SECONDS else max(20, pairs // 4)
        rows[label] = {}
        for name, make_loop in usable_methods().items():
            rows[label][name] = compare(bare_loop(step), make_loop(step), count, pairs_of_step)
    return rows


def usable_methods() -> dict[str, Callable[[Step], Run]]:
    methods = dict(METHODS)
    if importlib.util.find_spec("torch") is None:
        del methods["torch.utils.benchmark"]
    return methods


def measure_stamps() -> dict[str, dict[str, float]]:
    """Around nothing, alternated with the bare loop: what one more step in the record costs."""
    costs = {}
    bare = bare_loop(int)
    for name in ("steptime", "tracker style"):
        run = METHODS[name](int)
        bare_ns = []
        method_ns = []
        for _ in range(ALTERNATIONS):
            bare_ns.append(1e9 * bare(STAMPED_STEPS) / STAMPED_STEPS)
            start = clock()
            run(STAMPED_STEPS)
            method_ns.append((clock() - start) / STAMPED_STEPS)
        differences = np.array(method_ns) - np.array(bare_ns)
        costs[name] = {
            "least_ns": min(method_ns) - min(bare_ns),
            "median_ns": float(np.median(differences)),
        }
    return costs


class EmptyProgram:
    timer = None

    def wait(self) -> None:
        pass

    def compilations(self) -> int:
        return 0


def measure_bookkeeping(threads: int) -> dict[str, float]:
    """Between two blocks: read every side channel and write down the block.

    The run queue of each thread is read, so sleeping threads are added."""
    program: Any = EmptyProgram()
    done = threading.Event()
    for _ in range(threads - 1):
        threading.Thread(target=done.wait, daemon=True).start()
    # Blocks of one empty step: all of their time is bookkeeping.
    recorder = Recorder(program, host_loop(int, clock, 1), clock)
    recorder.start()
    for _ in range(2000):
        recorder.block(1)
    recorder.close()
    done.set()
    cost_ns = float(np.median(recorder.times_ns()))
    block_ns = 1e9 * preset("standard").block_seconds
    return {"median_ns": cost_ns, "share_of_a_block": cost_ns / block_ns}


def measure_parent() -> dict[str, Any] | str:
    """CPU time of the process that waits while a worker measures."""
    # The other parts of this benchmark run without these modules.
    try:
        from steptime.core.job import Job
        from steptime.run.local.launch import InterpreterLaunch
        from steptime.run.local.process import WorkerProcess
        from steptime.store.folder import FolderStore
        from steptime.store.journal import uuid7
    except ImportError as problem:
        return f"not available: {problem}"
    case = Case(workload="mnist-mlp", threads=1)
    job = Job(id=uuid7(), session=uuid7(), plan="", process=0, case=case, protocol=preset("quick"))
    launch = InterpreterLaunch((sys.executable,))
    with tempfile.TemporaryDirectory() as folder:
        worker = WorkerProcess.start(launch, job, FolderStore(folder))
        with worker.supervise():
            start = time.perf_counter()
            cpu_before = cpu_seconds()
            worker.wait()
            seconds = time.perf_counter() - start
            used = cpu_seconds() - cpu_before
        attempt = worker.attempt()
    if attempt.measurement is None:
        return f"not available: {attempt.failure.reason if attempt.failure else 'no result'}"
    return {"waited_seconds": seconds, "cpu_seconds": used, "share": used / seconds}


def measure_monitor(pairs: int) -> dict[str, Interval]:
    """Steps with a monitor that reads five times a second, against the same steps while the monitor
    is stopped. If both share a CPU, every reading delays a step."""
    all_cpus = os.sched_getaffinity(0)
    ratios = {}
    placements = {"on another CPU": all_cpus, "on the same CPU": {min(all_cpus)}}
    monitor = [sys.executable, "-P", "-m", "steptime.machine.monitor", str(os.getpid())]
    for placement, cpus in placements.items():
        os.sched_setaffinity(0, cpus)
        with subprocess.Popen([*monitor, "0.2", "cpu"], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            # Its first line says that it has started.
            process.stdout.readline()
            pair_count = max(10, pairs // 8)
            ratios[placement] = centre([monitored_ratio(process.pid) for _ in range(pair_count)])
            process.kill()
        os.sched_setaffinity(0, all_cpus)
    return ratios


def monitored_ratio(monitor: int) -> float:
    run = bare_loop(make_compute_step(UNIT_SECONDS))
    spent = {}
    # One signal lets the monitor run, the other stops it.
    for command in random.sample([signal.SIGCONT, signal.SIGSTOP], 2):
        os.kill(monitor, command)
        spent[command] = run(round(MONITORED_SECONDS / UNIT_SECONDS))
    return float(np.log(spent[signal.SIGCONT] / spent[signal.SIGSTOP]))


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def show(costs: dict[str, Any]) -> None:
    print(f"A timestamp, around nothing (least and median of {ALTERNATIONS} alternations)")
    for name, cost in costs["stamp"].items():
        print(f"  {name:24}{cost['least_ns']:8.0f} ns {cost['median_ns']:8.0f} ns")
    for threads, block in costs["block"].items():
        microseconds = block["median_ns"] / 1000
        share = block["share_of_a_block"]
        print(f"The bookkeeping of a block, {threads} threads: {microseconds:.1f} µs, {share:.3%}")
    print(f"\n  {'a step of':20}{'measured by':24}{'takes':>28}{'reports':>28}")
    for label, methods in costs["loop"].items():
        for name, ratios in methods.items():
            takes = percent(ratios["takes"])
            reports = percent(ratios["reports"])
            print(f"  {label:20}{name:24}{takes:>28}{reports:>28}")
    print(
        "  torch.utils.benchmark also takes two warm-up steps each time and does not report them."
    )
    parent = costs["parent"]
    if isinstance(parent, dict):
        parent = f"{parent['share']:.3%} of one CPU over {parent['waited_seconds']:.1f} s"
    print(f"\nThe parent while its worker measures: {parent}")
    for placement, interval in costs["monitor"].items():
        ratio = percent(interval)
        print(f"Steps while a monitor reads five times a second, {placement}: {ratio}")


def percent(interval: Interval) -> str:
    value, low, high = (100 * share for share in interval)
    return f"{value:+.2f} % ({low:+.2f} … {high:+.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="few pairs, to see that it works")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    pairs = 40 if options.quick else 400
    costs = {
        "stamp": measure_stamps(),
        "block": {threads: measure_bookkeeping(threads) for threads in THREADS},
        "loop": measure_loops(pairs),
        "parent": measure_parent(),
        "monitor": measure_monitor(pairs),
    }
    if options.json:
        print(json.dumps(costs))
    else:
        show(costs)


if __name__ == "__main__":
    main()
