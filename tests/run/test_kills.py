"""Fault injection: whatever is killed, no acknowledged result is lost and no process is left."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from steptime.store.folder import FolderStore

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("misbehaving", "no_orphans")]
Workers = Callable[[], list[int]]
IsGone = Callable[[int], bool]
Start = Callable[..., Any]  # a Popen whose output is text

PROCESSES, KILLS, BUDGET_SECONDS = 8, 20, 45.0
PARENT = """
import sys
from steptime.run import session
from steptime.core.case import Case
from steptime.core.protocol import Protocol
from steptime.store.folder import FolderStore

class Watch:
    def on_start(self, job, done, expected): print("started", job.id, flush=True)
    def on_finish(self, attempt): print("finished", attempt.id, attempt.failure is None, flush=True)

short = Protocol(
    preset="quick", processes_least=PROCESSES, processes_most=PROCESSES,
    block_seconds=0.01, least_steps=5, least_seconds=LEAST_SECONDS,
    warmup_steps=10, warmup_seconds=0.02, warmup_most_seconds=0.1,
)
cases = [
    Case(workload="mnist-mlp", framework=framework, batch_size=size)
    for framework, size in FRAMEWORKS
]
try:
    session.run(cases, short, FolderStore(sys.argv[1]), watch=Watch())
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.fixture
def start(store: FolderStore) -> Start:
    def run(
        frameworks: list[tuple[str, int]],
        processes: int = PROCESSES,
        least_seconds: float = 0.05,
    ) -> Any:
        text = PARENT.replace("PROCESSES", str(processes)).replace("FRAMEWORKS", repr(frameworks))
        text = text.replace("LEAST_SECONDS", str(least_seconds))
        command = [sys.executable, "-c", text, str(store.path)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)

    return run


def acknowledged(parent: Any) -> list[str]:
    """Ids that the parent said were measured, before it ended."""
    lines = [line.split() for line in parent.communicate()[0].splitlines()]
    return [words[1] for words in lines if words[0] == "finished" and words[2] == "True"]


def test_run_killed_at_any_moment_loses_no_acknowledged_result(
    store: FolderStore, start: Start, workers: Workers, is_gone: IsGone
) -> None:
    rng, cases, safe, kills = random.Random(7), [("calm", 4), ("calm", 8)], [], 0
    deadline = time.monotonic() + BUDGET_SECONDS
    while kills < KILLS and time.monotonic() < deadline:
        parent = start(cases)
        if not parent.stdout.readline():  # all is done
            break
        left = kill_something(parent, rng, workers)
        kills += 1
        safe += acknowledged(parent)
        assert all(is_gone(process) for process in {*left, *workers()})
        stored = {attempt.id: attempt for attempt in FolderStore(store.path).attempts()}
        assert all(stored[name].measurement is not None for name in safe)
    finisher = start(cases)
    safe += acknowledged(finisher)
    records = FolderStore(store.path).records()
    assert finisher.returncode == 0 and kills >= 5
    assert [len(record.measurements) for record in records] == [PROCESSES, PROCESSES]
    assert all(
        len({attempt.process for attempt in record.attempts}) == len(record.attempts)
        for record in records
    )
    assert len({record.session for record in records}) == 1 and len(safe) == len(set(safe))


def kill_something(parent: Any, rng: random.Random, workers: Workers) -> list[int]:
    """Kill the parent, and sometimes a worker before. Returns the workers that were running."""
    time.sleep(rng.uniform(0.0, 1.2))
    for process in workers() if rng.random() < 0.4 else ():
        os.kill(process, signal.SIGKILL)
        time.sleep(rng.uniform(0.0, 0.6))
    left = workers()
    parent.kill()
    return left


def test_run_after_an_interrupt_continues(
    store: FolderStore, start: Start, workers: Workers
) -> None:
    # Each process measures for so long that the second is surely interrupted.
    parent = start([("calm", 4)], processes=3, least_seconds=3.0)
    for line in parent.stdout:
        if "finished" in line:
            break
    parent.stdout.readline()  # the second has begun
    time.sleep(0.3)
    os.killpg(parent.pid, signal.SIGINT)  # as a terminal does
    parent.communicate()
    assert parent.returncode == 130 and workers() == []
    causes = [attempt.failure and attempt.failure.cause for attempt in store.attempts()]
    assert causes == [None, "cancelled"]
    assert (
        acknowledged(start([("calm", 4)], processes=3, least_seconds=3.0))
        == [one.id for one in store.attempts() if not one.failure][1:]
    )


def test_run_continues_after_failing_cases(store: FolderStore, start: Start) -> None:
    frameworks = ["segfault", "calm", "leaves", "absent", "full"]
    parent = start([(framework, 4) for framework in frameworks], processes=2)
    assert len(acknowledged(parent)) == 2 and parent.returncode == 0
    found = {
        record.case.framework: (record.status, len(record.attempts)) for record in store.records()
    }
    crashed, once = ("crashed", 2), 1
    assert found == {
        "segfault": crashed,
        "calm": ("ok", 2),
        "leaves": crashed,
        "absent": ("not_installed", once),
        "full": ("out_of_memory", once),
    }
