"""Start the process that watches a worker from outside.

Its output lies beside the journal until the journal takes it over."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from steptime.core.container import MANAGED
from steptime.core.job import Job
from steptime.store import monitor_log
from steptime.store.permissions import open_private


def start_monitor(job: Job, worker_pid: int, journal: Path) -> subprocess.Popen[bytes] | None:
    """None if the protocol wants no monitor, or if it cannot start.

    A missing monitor costs its series, never the measurement."""
    if not job.protocol.monitor_seconds:
        return None
    # Ranks use all GPUs of the node, not only the case's own.
    watches_all_gpus = job.case.ranks > 1 and job.case.device != "cpu"
    device = "cuda" if watches_all_gpus else job.case.device
    arguments = [str(worker_pid), str(job.protocol.monitor_seconds), device]
    if not _descends_from_us(job):
        # Then the monitor finds the working processes by the journal that they name.
        arguments.append(str(journal))
    try:
        with open(monitor_log.log_path(journal), "wb", opener=open_private) as file:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "steptime.machine.monitor", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                # If it ends early, this says why.
                stderr=file,
                # Signals to the worker's group, or to ours, are not meant for it.
                start_new_session=True,
            )
    except OSError:
        return None


def _descends_from_us(job: Job) -> bool:
    """False if a container daemon or srun starts the processes that do the work."""
    kind = job.environment.get("container", {}).get("kind", "")
    if kind in MANAGED:
        return False
    return job.case.ranks == 1 or job.case.nodes == 1
