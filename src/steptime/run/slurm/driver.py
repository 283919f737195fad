"""`python -m steptime.run.slurm.driver ARRAY_FOLDER`: run one task of an array, on its node."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from types import FrameType

from steptime.core.executor import Executor
from steptime.core.job import Job
from steptime.run.local import LocalExecutor
from steptime.run.slurm.client import NoAnswer, Slurm
from steptime.run.slurm.folder import TERMINATED, CampaignFolder, Key, TaskJournal, slot_of
from steptime.store.folder import FolderStore
from steptime.store.journal import uuid7
from steptime.store.permissions import write_private

# Facts of the job that are recorded. A list, so that no person's name and no secret is stored.
RECORDED = (
    "SLURM_ARRAY_JOB_ID",
    "SLURM_ARRAY_TASK_ID",
    "SLURM_CLUSTER_NAME",
    "SLURM_CPUS_ON_NODE",
    "SLURM_CPUS_PER_TASK",
    "SLURM_GPUS_ON_NODE",
    "SLURM_JOB_GPUS",
    "SLURM_JOB_ID",
    "SLURM_JOB_NODELIST",
    "SLURM_JOB_PARTITION",
    "SLURM_JOB_QOS",
    "SLURM_MEM_PER_CPU",
    "SLURM_MEM_PER_NODE",
    "SLURM_RESTART_COUNT",
    "SLURMD_NODENAME",
    "LOADEDMODULES",
)
STATE_SECONDS = 5.0  # between the signal and the end there is time for one question


def main() -> int:
    array = Path(sys.argv[1])
    campaign = array.parents[1]
    folder = CampaignFolder(FolderStore(campaign.parents[1]), campaign.name)
    folder.set_number(array, os.environ["SLURM_ARRAY_JOB_ID"])
    index = int(os.environ["SLURM_ARRAY_TASK_ID"])
    executor = LocalExecutor()
    for job in folder.read_tasks(array)[index]:
        measure(job, executor, folder)
    return 0


def measure(job: Job, executor: Executor, folder: CampaignFolder) -> None:
    """A restarted task skips what it, or its ghost on a lost node, has done already."""
    task = f"{os.environ['SLURM_ARRAY_JOB_ID']}_{os.environ['SLURM_ARRAY_TASK_ID']}"
    key = Key(slot_of(job), task, int(os.environ.get("SLURM_RESTART_COUNT") or 0))
    if folder.has_result(key.slot) or folder.has_outcome(key):
        return
    note_signal(folder.running_folder / f"{key}{TERMINATED}", key)
    slurm = dict(job.environment.get("slurm", {}))
    slurm |= {name: os.environ[name] for name in RECORDED if name in os.environ}
    # A new id: several starts of the same job leave several journals.
    job = replace(job, id=uuid7(), environment={**job.environment, "slurm": slurm})
    executor.run(job, TaskJournal(folder, key))
    folder.deliver(folder.journal(key))


def note_signal(note: Path, key: Key) -> None:
    """If Slurm ends this task by SIGTERM, write down why, as far as Slurm says.

    It must be asked at once, because it forgets within minutes."""

    def leave(number: int, frame: FrameType | None) -> None:
        write_private(note, "")
        with contextlib.suppress(NoAnswer):
            write_private(note, Slurm(STATE_SECONDS).final_state(key.task, key.restart))
        os._exit(128 + number)

    signal.signal(signal.SIGTERM, leave)


if __name__ == "__main__":
    sys.exit(main())
