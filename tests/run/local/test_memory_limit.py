"""Real kills by the kernel, in a control group with little memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from steptime.core.case import Case
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.store.journal import uuid7

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("misbehaving", "no_orphans")]
GROUPS = Path("/sys/fs/cgroup")
LIMIT = str(400 << 20)
# The folder of each version, its limit of memory, and that of memory with swap.
VERSIONS = (
    (GROUPS / "memory", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", LIMIT),
    (GROUPS, "memory.max", "memory.swap.max", "0"),
)
RUN_JOB = """
import json, sys
from pathlib import Path
from steptime.core.job import Job
from steptime.run.local import LocalExecutor
from steptime.store.folder import FolderStore
attempt = LocalExecutor().run(Job.from_dict(json.loads(sys.argv[1])), FolderStore(Path("results")))
"""
RUN_RANKS = """
import sys
from pathlib import Path
from steptime.core.case import Case
from steptime.ranks.launcher import run_ranks
HOARD = "import os, time; x = bytearray(b'x') * (600 << 20) if os.environ['RANK'] == '1' else 0"
case = Case(workload="lenet5", exchange="independent", devices=2)
failure = run_ranks([sys.executable, "-c", HOARD], case, Path("a.jsonl"))
"""
PRINT = "print(json.dumps(attempt.failure and attempt.failure.to_dict()))"
RunLimited = Callable[..., str]


@pytest.fixture
def run_limited(tmp_path: Path) -> Iterator[RunLimited]:
    """Runs Python in a control group of its own, with its children, and returns what it prints."""
    group = make_group()

    def run(program: str, *arguments: str) -> str:
        enter = f'echo $$ > {group}/cgroup.procs && exec "$@"'
        command = ["sh", "-c", enter, "sh", sys.executable, "-c", program, *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=100
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    yield run
    group.rmdir()


def make_group() -> Path:
    for folder, limit, swap_limit, swap in VERSIONS:
        if not (folder / "cgroup.procs").exists():
            continue
        group = folder / f"steptime-test-{os.getpid()}"
        with suppress(OSError):
            group.mkdir()
            if (group / limit).exists():
                (group / limit).write_text(LIMIT)
                # A kernel may not count swap.
                if (group / swap_limit).exists():
                    (group / swap_limit).write_text(swap)
                return group
        with suppress(OSError):
            group.rmdir()
    pytest.skip("no control group with a limit of memory may be made here")


@pytest.fixture
def job(short: Protocol) -> Callable[[str], str]:
    def make(framework: str, launch: str = "") -> str:
        case = Case(workload="mnist-mlp", framework=framework, batch_size=4, launch=launch)
        made = Job(id=uuid7(), session="s", plan="p", process=0, case=case, protocol=short)
        return json.dumps(made.to_dict())

    return make


def test_run_in_a_memory_limit_is_out_of_memory(
    run_limited: RunLimited, job: Callable[..., str]
) -> None:
    failure = json.loads(run_limited(RUN_JOB + PRINT, job("hoards")))
    assert failure["cause"] == "out_of_memory" and "memory ran out" in failure["reason"]


def test_run_by_a_wrapper_in_a_memory_limit_is_out_of_memory(
    run_limited: RunLimited,
    job: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrapper = tmp_path / "wrapper"
    # A shell that waits, as `module load … && python` in a script does.
    wrapper.write_text(f'#!/bin/sh\n{sys.executable} "$@"\nexit $?\n')
    wrapper.chmod(0o755)
    (tmp_path / "machine.toml").write_text(f'[launches.wrapped]\nlaunch = ["{wrapper}"]\n')
    monkeypatch.setenv("STEPTIME_MACHINE", str(tmp_path / "machine.toml"))
    failure = json.loads(run_limited(RUN_JOB + PRINT, job("hoards", "wrapped")))
    assert failure["cause"] == "out_of_memory" and "memory ran out" in failure["reason"]


def test_run_killed_by_another_program_in_a_memory_limit_is_crashed(
    run_limited: RunLimited, job: Callable[..., str]
) -> None:
    failure = json.loads(run_limited(RUN_JOB + PRINT, job("killed")))
    assert failure["cause"] == "crashed" and "killed by SIGKILL" in failure["reason"]


def test_run_ranks_in_a_memory_limit_is_out_of_memory(run_limited: RunLimited) -> None:
    printed = run_limited(RUN_RANKS + "print(failure.cause.value, failure.reason)")
    assert printed == "out_of_memory The kernel killed Rank 1 of 2 for lack of memory.\n"
