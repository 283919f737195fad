"""Fault injection: whatever is killed, whenever, nothing that was acknowledged is lost and nobody is left behind."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from steptime.store.folder import FolderStore

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("misbehaving", "no_orphans")]
Workers = Callable[[], list[int]]
IsGone = Callable[[int], bool]

PROCESSES, KILLS, BUDGET_SECONDS = 8, 20, 60.0
PARENT = """
import sys
from steptime import session
from steptime.core.case import Case
from steptime.core.protocol import Protocol
from steptime.store.folder import FolderStore

class Watch:
    def started(self, job, done, expected): print("started", job.id, flush=True)
    def finished(self, attempt): print("finished", attempt.id, attempt.failure is None, flush=True)

short = Protocol(profile="quick", processes_least=PROCESSES, processes_most=PROCESSES, block_seconds=0.01, least_steps=5,
    least_seconds=0.05, warmup_steps=10, warmup_seconds=0.02, warmup_most_seconds=0.1, limit_seconds=60.0)
cases = [Case(workload="mnist-mlp", framework=framework, batch_size=size) for framework, size in FRAMEWORKS]
try:
    session.run(cases, short, FolderStore(sys.argv[1]), watch=Watch())
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.fixture
def start(store: FolderStore) -> Callable[..., subprocess.Popen[str]]:
    def run(frameworks: list[tuple[str, int]], processes: int = PROCESSES) -> subprocess.Popen[str]:
        text = PARENT.replace("PROCESSES", str(processes)).replace("FRAMEWORKS", repr(frameworks))
        command = [sys.executable, "-c", text, str(store.path)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)

    return run


def acknowledged(parent: subprocess.Popen[str]) -> list[str]:
    """Ids that the parent said were measured, before it ended."""
    lines = [line.split() for line in parent.communicate()[0].splitlines()]
    return [words[1] for words in lines if words[0] == "finished" and words[2] == "True"]


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_killed_at_any_moment_nothing_acknowledged_is_lost_and_nothing_is_done_twice(
    store: FolderStore, start: Callable[..., subprocess.Popen[str]], workers: Workers, is_gone: IsGone
) -> None:
    dice, cases = random.Random(7), [("calm", 4), ("calm", 8)]
    safe: list[str] = []
    kills: Counter[str] = Counter()
    deadline = time.monotonic() + BUDGET_SECONDS
    while sum(kills.values()) < KILLS and time.monotonic() < deadline:
        parent = start(cases)
        assert parent.stdout is not None
        safe += [parent.stdout.readline().split()[1]][:0]  # its first process has begun
        time.sleep(dice.uniform(0.0, 1.2))
        left = workers()
        if left and dice.random() < 0.4:
            os.kill(left[0], signal.SIGKILL)
            kills["worker"] += 1
            time.sleep(dice.uniform(0.0, 0.6))
            left = workers()
        parent.kill()
        kills["parent"] += 1
        safe += acknowledged(parent)
        assert all(is_gone(process) for process in {*left, *workers()})
        stored = {attempt.id: attempt for attempt in FolderStore(store.path).attempts()}
        assert all(stored[name].measurement is not None for name in safe)
    finisher = start(cases)
    safe += acknowledged(finisher)
    assert finisher.returncode == 0 and kills["parent"] >= 5 and kills["worker"] >= 2
    records = FolderStore(store.path).records()
    assert [len(record.measurements) for record in records] == [PROCESSES, PROCESSES]
    assert all(len({attempt.process for attempt in record.attempts}) == len(record.attempts) for record in records)
    assert len({record.session for record in records}) == 1 and len(safe) == len(set(safe))
