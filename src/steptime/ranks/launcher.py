"""Starts the ranks of a case as copies of one command, and says why when one of them is lost. Runs no step itself."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.core.errors import SteptimeError
from steptime.core.record import Failure
from steptime.machine.oom import count_oom_kills
from steptime.ranks.rendezvous import BEHIND

LED = "STEPTIME_LED"  # set for ranks that are waited for here, where it is written down why they failed
PARENT = "STEPTIME_PARENT"
GRACE_SECONDS = 3.0  # that the others have to say what they saw, when one rank is lost
PR_SET_PDEATHSIG = 1
FIRST_PORT, APART, PLACES = 20000, 16, 768
BESIDE = 8  # ports for a framework whose ranks listen at one each, and a few more

Processes = dict[str, subprocess.Popen[bytes]]


def start(command: Sequence[str], case: Case, journal: Path) -> Failure | None:
    """Returns when every rank is gone, and sleeps until then. None: all of them ended well."""
    killed = count_oom_kills()
    processes = _by_srun(command, case) if case.nodes > 1 else _here(command, case.ranks)
    try:
        _wait(processes)
        ended = {
            name: process.returncode for name, process in processes.items() if process.returncode
        }
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
    told = notes(journal, case.ranks)
    if told and case.nodes > 1:
        ended = {}  # srun fails because a rank did
    by_memory = count_oom_kills() > killed
    return chosen(
        told,
        {name: death(name, code, by_memory) for name, code in ended.items() if name not in told},
    )


def note(journal: Path, rank: int, failure: Failure) -> None:
    """A rank that is led leaves beside the journal why it failed."""
    with suppress(OSError):  # then its exit code has to do
        _note(journal, rank).write_text(json.dumps(failure.to_dict()))


def notes(journal: Path, size: int) -> dict[str, Failure]:
    """What ranks have noted, the earliest first; the notes are gone behind it."""
    paths = [(path, rank) for rank in range(size) if (path := _note(journal, rank)).exists()]
    found = {}
    for path, rank in sorted(paths, key=lambda pair: pair[0].stat().st_mtime_ns):
        with suppress(ValueError, TypeError, KeyError):
            found[name_of(rank, size)] = Failure.from_dict(json.loads(path.read_text()))
        path.unlink(missing_ok=True)
    return found


def chosen(told: Mapping[str, Failure], silent: Mapping[str, Failure]) -> Failure | None:
    """The failure that the others follow from. A rank whose partner is gone fails too, but it can say so: one that was
    killed cannot. Memory comes first, because only then is a smaller batch worth a try."""
    everyone = [*silent.items(), *told.items()]
    memory = [pair for pair in everyone if pair[1].cause == Cause.OUT_OF_MEMORY]
    return next((named(name, failure) for name, failure in [*memory, *everyone]), None)


def named(name: str, failure: Failure) -> Failure:
    """With the rank that tells it, unless it holds for all of them."""
    if failure.cause in (Cause.UNSUPPORTED, Cause.NOT_INSTALLED) or name in failure.reason:
        return failure
    return replace(failure, reason=f"{name}: {failure.reason}")


def death(name: str, code: int, by_memory: bool) -> Failure:
    if code > 0:
        return Failure(
            cause=Cause.CRASHED, reason=f"{name} ended with exit code {code} and no result."
        )
    if code == -signal.SIGKILL and by_memory:
        return Failure(
            cause=Cause.OUT_OF_MEMORY, reason=f"The kernel killed {name} for want of memory."
        )
    word = next((one.name for one in signal.Signals if one == -code), f"signal {-code}")
    return Failure(cause=Cause.CRASHED, reason=f"{name} was killed by {word}.")


def _here(command: Sequence[str], size: int) -> Processes:
    """The first has this process's input and output; what the others print goes to the log."""
    place = {
        "WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port(BESIDE + size)),
    }
    own = {**os.environ, **place, PARENT: str(os.getpid()), LED: "1"}
    return {
        name_of(rank, size): subprocess.Popen(
            command,
            env={**own, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdin=subprocess.DEVNULL if rank else None,
            stdout=sys.stderr.fileno() if rank else None,
        )
        for rank in range(size)
    }


def _by_srun(command: Sequence[str], case: Case) -> Processes:
    """One process for Slurm's own starter, which tells each rank its number. The first rank is on this node."""
    if "SLURM_JOB_ID" not in os.environ:
        raise SteptimeError(
            f"{case.nodes} nodes are reached through Slurm (steptime submit), or by a launch line of the machine file "
            "that starts the ranks itself (mpirun, torchrun); neither is so here."
        )
    own = {name: value for name, value in os.environ.items() if name != PARENT}
    each, cpus = case.ranks_per_node, os.environ.get("SLURM_CPUS_ON_NODE", "")
    shares = [f"--cpus-per-task={max(1, int(cpus) // each)}"] if cpus.isdigit() else []
    spread = [
        f"--nodes={case.nodes}",
        f"--ntasks={case.ranks}",
        f"--ntasks-per-node={each}",
        *shares,
        "--overcommit",
        "--cpu-bind=none",
    ]
    words = ["srun", *spread, "--input=0", "--kill-on-bad-exit=1"]
    variables = {**own, "MASTER_PORT": str(free_port(BESIDE + case.ranks)), LED: "1"}
    # Killed alone, srun ends its tasks on all nodes; killed together with the child that it has for that, it does not.
    # So it is no part of the group that our parent kills.
    apart = subprocess.Popen(
        [*words, *command], env=variables, start_new_session=True, preexec_fn=end_with_parent
    )
    return {"srun": apart}


def end_with_parent() -> None:
    """From now on, whoever kills the parent of this process kills this process too."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _wait(processes: Processes) -> None:
    """Until all are gone, or a little longer than the first that is lost."""
    waking, until = select.poll(), None
    files = {os.pidfd_open(process.pid): process for process in processes.values()}
    for file in files:
        waking.register(file, select.POLLIN)
    while files:
        ready = waking.poll(None if until is None else max(0.0, until - time.monotonic()) * 1000)
        for file, _ in ready:
            waking.unregister(file)
            os.close(file)
            if files.pop(file).wait() and until is None:
                until = time.monotonic() + GRACE_SECONDS
        if not ready:
            break
    for file in files:
        os.close(file)


def name_of(rank: int, size: int) -> str:
    return f"Rank {rank} of {size}"


def _note(journal: Path, rank: int) -> Path:
    return journal.with_suffix(f".rank{rank}.json")


def free_port(count: int = 1 + BEHIND) -> int:
    """The first of so many in a row that nobody listens at. Below those that the kernel gives to whoever connects: a
    framework may come to its port seconds later. Starters of one host begin their search apart."""
    for place in range(os.getpid(), os.getpid() + PLACES):
        first = FIRST_PORT + APART * (place % PLACES)
        with suppress(OSError), contextlib.ExitStack() as held:
            for port in range(first, first + count):
                held.enter_context(socket.create_server(("", port)))
            return first
    raise SteptimeError(
        f"No {count} ports in a row are free from {FIRST_PORT} on, at which ranks could meet."
    )
