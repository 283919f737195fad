"""Starts the process that watches a worker. What it writes lies beside the journal until that takes it over."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from steptime.core.container import MANAGED
from steptime.core.job import Job
from steptime.store import monitor_log


def start(job: Job, worker: int, journal: Path) -> subprocess.Popen[bytes] | None:
    """None: nobody asked for it. One that cannot start costs its series and no measurement."""
    if not job.protocol.monitor_seconds:
        return None
    device = "cuda" if job.case.ranks > 1 and job.case.device != "cpu" else job.case.device
    words = [
        str(worker),
        str(job.protocol.monitor_seconds),
        device,
        *([str(journal)] if _apart(job) else []),
    ]
    try:
        with monitor_log.log_path(journal).open("wb") as file:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "steptime.machine.monitor", *words],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,  # why it ended, where it ends early
                start_new_session=True,  # what is sent to the worker's group, or to ours, is not meant for it
            )
    except OSError:
        return None


def _apart(job: Job) -> bool:
    """Whether somebody else starts those who work, so that they do not descend from the process that we started."""
    kind = job.environment.get("container", {}).get("kind", "")
    return kind in MANAGED or (job.case.ranks > 1 and job.case.nodes > 1)
