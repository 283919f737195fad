"""Start the ranks of a case as copies of one command, and report why one of them failed.

Runs no step itself."""

from __future__ import annotations

import contextlib
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
from steptime.machine.leftovers import VARIABLE, die_with_parent
from steptime.machine.oom import count_oom_kills, has_grown, is_sigkill
from steptime.ranks.rendezvous import PORT_OFFSET

# Set for ranks that this module started: they leave a note about their failure.
LAUNCHED = "STEPTIME_LAUNCHED"
PARENT = "STEPTIME_PARENT"
# Time for the other ranks to leave their notes after one is lost.
GRACE_SECONDS = 3.0
FIRST_PORT, PORT_STRIDE, PORT_SLOTS = 20000, 16, 768
# Besides one for each rank: some frameworks listen at a port on every rank.
EXTRA_PORTS = 8

Processes = dict[str, subprocess.Popen[bytes]]


def run_ranks(command: Sequence[str], case: Case, journal: Path) -> Failure | None:
    """Start all ranks and sleep until every one has exited. None: all of them succeeded."""
    oom_kills = count_oom_kills()
    if case.nodes > 1:
        processes = _start_with_srun(command, case)
    else:
        processes = _start_locally(command, case.ranks)
    try:
        _wait(processes)
        codes = {name: process.returncode for name, process in processes.items()}
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
    noted = collect_notes(journal, case.ranks)
    # srun itself fails if a rank does, so its exit code says nothing more.
    if noted and case.nodes > 1:
        codes = {}
    by_memory = has_grown(oom_kills, count_oom_kills())
    silent = {}
    for name, code in codes.items():
        if code and name not in noted:
            silent[name] = exit_failure(name, code, by_memory)
    return root_failure(noted, silent)


def write_note(journal: Path, rank: int, failure: Failure) -> None:
    """Leave the failure of a launched rank in a file beside the journal."""
    # If the note cannot be written, the exit code is all that the launcher reports.
    with suppress(OSError):
        note = _note_path(journal, rank)
        note.touch(mode=0o600)
        note.write_text(json.dumps(failure.to_dict()))


def collect_notes(journal: Path, size: int) -> dict[str, Failure]:
    """The failures that ranks noted, earliest first. Deletes the notes."""
    paths = {_note_path(journal, rank): rank for rank in range(size)}
    existing = [path for path in paths if path.exists()]
    failures = {}
    for path in sorted(existing, key=lambda path: path.stat().st_mtime_ns):
        with suppress(ValueError, TypeError, KeyError):
            failures[rank_name(paths[path], size)] = Failure.from_dict(json.loads(path.read_text()))
        path.unlink(missing_ok=True)
    return failures


def root_failure(noted: Mapping[str, Failure], silent: Mapping[str, Failure]) -> Failure | None:
    """The failure that caused the others.

    A rank fails too if its partner is gone, but it leaves a note; a killed rank cannot. Lack of
    memory comes first, because only then is a smaller batch worth trying."""
    failures = [*silent.items(), *noted.items()]
    for name, failure in failures:
        if failure.cause == Cause.OUT_OF_MEMORY:
            return add_rank_name(name, failure)
    for name, failure in failures:
        return add_rank_name(name, failure)
    return None


def add_rank_name(name: str, failure: Failure) -> Failure:
    """The failure with its rank in the reason, unless it holds for all ranks."""
    if failure.cause in (Cause.UNSUPPORTED, Cause.NOT_INSTALLED) or name in failure.reason:
        return failure
    return replace(failure, reason=f"{name}: {failure.reason}")


def exit_failure(name: str, code: int, by_memory: bool) -> Failure:
    """The failure of a process that exited with this code and left no note."""
    if is_sigkill(code) and by_memory:
        return Failure(
            cause=Cause.OUT_OF_MEMORY, reason=f"The kernel killed {name} for lack of memory."
        )
    if code > 0:
        return Failure(
            cause=Cause.CRASHED, reason=f"{name} ended with exit code {code} and no result."
        )
    try:
        signal_name = signal.Signals(-code).name
    except ValueError:
        signal_name = f"signal {-code}"
    return Failure(cause=Cause.CRASHED, reason=f"{name} was killed by {signal_name}.")


def _start_locally(command: Sequence[str], size: int) -> Processes:
    """Rank 0 gets this process's input and output. The output of the others goes to the log."""
    variables = {
        **os.environ,
        "WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(find_free_port(EXTRA_PORTS + size)),
        PARENT: str(os.getpid()),
        LAUNCHED: "1",
    }
    processes = {}
    for rank in range(size):
        processes[rank_name(rank, size)] = subprocess.Popen(
            command,
            env={**variables, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdin=subprocess.DEVNULL if rank else None,
            stdout=sys.stderr.fileno() if rank else None,
        )
    return processes


def _start_with_srun(command: Sequence[str], case: Case) -> Processes:
    """One process, srun, which tells each rank its number. Rank 0 runs on this node."""
    if "SLURM_JOB_ID" not in os.environ:
        raise SteptimeError(
            f"{case.nodes} nodes need Slurm (steptime submit) or a launch line in the machine file "
            "that starts the ranks (mpirun, torchrun); there is neither here."
        )
    variables = dict(os.environ)
    variables.pop(PARENT, None)
    # Nor may it be found as a leftover: it ends with its parent, and then ends its tasks.
    variables.pop(VARIABLE, None)
    variables["MASTER_PORT"] = str(find_free_port(EXTRA_PORTS + case.ranks))
    variables[LAUNCHED] = "1"
    # If srun alone is killed, it ends its tasks on all nodes. If its helper child is killed with
    # it, it does not. So srun must not be in the process group that our parent kills.
    srun = subprocess.Popen(
        [*_srun_command(case), *command],
        env=variables,
        start_new_session=True,
        preexec_fn=die_with_parent,
    )
    return {"srun": srun}


def _srun_command(case: Case) -> list[str]:
    command = [
        "srun",
        f"--nodes={case.nodes}",
        f"--ntasks={case.ranks}",
        f"--ntasks-per-node={case.ranks_per_node}",
    ]
    cpus = os.environ.get("SLURM_CPUS_ON_NODE", "")
    if cpus.isdigit():
        command.append(f"--cpus-per-task={max(1, int(cpus) // case.ranks_per_node)}")
    return [*command, "--overcommit", "--cpu-bind=none", "--input=0", "--kill-on-bad-exit=1"]


def _wait(processes: Processes) -> None:
    """Until all have exited, or until GRACE_SECONDS after the first failure."""
    poll = select.poll()
    until: float | None = None
    files = {os.pidfd_open(process.pid): process for process in processes.values()}
    for file in files:
        poll.register(file, select.POLLIN)
    while files:
        milliseconds = None
        if until is not None:
            milliseconds = 1000 * max(0.0, until - time.monotonic())
        ready = poll.poll(milliseconds)
        for file, _ in ready:
            poll.unregister(file)
            os.close(file)
            code = files.pop(file).wait()
            if code and until is None:
                until = time.monotonic() + GRACE_SECONDS
        if not ready:
            break
    for file in files:
        os.close(file)


def rank_name(rank: int, size: int) -> str:
    return f"Rank {rank} of {size}"


def _note_path(journal: Path, rank: int) -> Path:
    return journal.with_suffix(f".rank{rank}.json")


def find_free_port(count: int = 1 + PORT_OFFSET) -> int:
    """The first of `count` consecutive ports at which no process listens.

    They lie below the kernel's ephemeral ports, because a framework may open its port seconds
    later. Launchers on one host start their search at different ports."""
    for slot in range(os.getpid(), os.getpid() + PORT_SLOTS):
        first = FIRST_PORT + PORT_STRIDE * (slot % PORT_SLOTS)
        with suppress(OSError), contextlib.ExitStack() as servers:
            for port in range(first, first + count):
                servers.enter_context(socket.create_server(("", port)))
            return first
    raise SteptimeError(
        f"The ranks need {count} consecutive free ports from {FIRST_PORT} on; there are none."
    )
