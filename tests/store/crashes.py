"""Writers and compactors that get killed, forked from one small process to be quick.

`write FOLDER ROUNDS`: in each round four writers are killed after a moment. What they wrote is
acknowledged in FOLDER.acks.
`compact FOLDER ROUNDS`: one compactor after the other, killed after a moment.
`stop FOLDER MOST`: a compactor for FOLDER.1 dies before its first call to the file system, one
for FOLDER.2 before its second, and so on, until one completes."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import duckdb  # noqa: F401  before the fork, because to import it takes longer than to compact

from steptime.core.case import Case
from steptime.core.job import Job
from steptime.core.measurement import Block, Measurement
from steptime.core.protocol import Protocol
from steptime.store.compaction import compact
from steptime.store.folder import FolderStore
from steptime.store.journal import Journal, uuid7

COUNTS = {"cpu_ns": 7, "faults": 1, "major_faults": 0, "switches": 2, "involuntary_switches": 0}
BLOCK = Block(samples=4, host_ns=30, dispatch_ns=20, **COUNTS)
CALLS = ("open", "os.rename", "os.remove", "os.mkdir", "os.scandir")
rng = random.Random(7)


def measurement() -> Measurement:
    constant = {
        "group": 1,
        "device_ns": None,
        "cut": 1,
        "steady": True,
        "clock": {"cost_ns": 50},
        "starts": {},
    }
    return Measurement(stamps=(100, 110, 125, 131, 150), blocks=(BLOCK,), **constant)


def write(store: FolderStore, acks: int) -> None:
    """For ever. An attempt counts as acknowledged when `measured` has returned."""
    while True:
        job = Job(
            id=uuid7(),
            session=uuid7(),
            plan="p",
            process=0,
            case=Case(workload="mnist-mlp"),
            protocol=Protocol(),
        )
        with Journal(store.journal(job.id)) as journal:
            journal.begin(job)
            journal.write_measurement(measurement())
        os.write(acks, f"{job.id}\n".encode())


def forked(work: Callable[[], object]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        work()
        os._exit(0)
    finally:
        os._exit(1)


def writers(store: FolderStore, rounds: int) -> None:
    acks = os.open(f"{store.path}.acks", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for _ in range(rounds):
        children = [forked(lambda: write(store, acks)) for _ in range(4)]
        time.sleep(rng.uniform(0.01, 0.06))
        for child in children:
            os.kill(child, signal.SIGKILL)
        for child in children:
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def compactors(store: FolderStore, rounds: int) -> None:
    """Some are killed at once, some get far. Tells how many were killed."""
    killed, longest = 0, 0.2
    for _ in range(rounds):
        child, begun = forked(lambda: compact(store)), time.monotonic()
        time.sleep(rng.uniform(0.0, longest))
        os.kill(child, signal.SIGKILL)
        died = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        killed += died
        longest = min(longest * 1.1, 1.0) if died else time.monotonic() - begun
    print(killed)


def stopped(store: FolderStore, most: int) -> None:
    for call in range(1, most):
        copy = FolderStore(shutil.copytree(store.path, f"{store.path}.{call}"))
        child = forked(lambda copy=copy, call=call: compact_until(copy, call))
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
            return
    raise SystemExit(f"more than {most} calls")


def compact_until(store: FolderStore, call: int) -> None:
    seen = 0

    def count(event: str, _: object) -> None:
        nonlocal seen
        seen += event in CALLS
        if event in CALLS and seen >= call:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    compact(store)


if __name__ == "__main__":
    what, folder, number = sys.argv[1:]
    {"write": writers, "compact": compactors, "stop": stopped}[what](
        FolderStore(Path(folder)), int(number)
    )
