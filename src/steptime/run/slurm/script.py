"""From jobs to arrays, and the shell script of an array. Calls nothing."""

from __future__ import annotations

import random
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from steptime.core.job import Job
from steptime.plan.machine_file import MachineFile
from steptime.plan.slurm_section import Section


@dataclass(frozen=True)
class Array:
    """Tasks that ask Slurm for the same things."""

    section: Section
    request: tuple[str, ...]
    tasks: tuple[tuple[Job, ...], ...]

    @property
    def jobs(self) -> list[Job]:
        return [job for task in self.tasks for job in task]


def arrays(jobs: Sequence[Job], machine: MachineFile, most_tasks: int) -> list[Array]:
    """Cases in random order, each once before any comes again; so a bundle compares its cases on one node."""
    groups: dict[tuple[Section, tuple[str, ...]], list[Job]] = {}
    for job in jobs:
        section = machine.section(job.case.node_type)
        groups.setdefault((section, section.request(job.case)), []).append(job)
    found = []
    for (section, request), group in groups.items():
        # An order of its own: in one for all arrays, what changes in time would pass for a difference of cases.
        rng = random.Random(" ".join((group[0].session, section.name, *request)))
        ordered = sorted(rng.sample(group, len(group)), key=lambda job: job.process)
        tasks = [
            tuple(ordered[first : first + section.bundle])
            for first in range(0, len(ordered), section.bundle)
        ]
        parts = (
            tuple(tasks[first : first + most_tasks]) for first in range(0, len(tasks), most_tasks)
        )
        found += [Array(section, request, part) for part in parts]
    return found


def script(array: Array, folder: Path, name: str) -> str:
    """A requeued task goes on in the same log. `exec`: signals of Slurm reach the driver."""
    throttle = f"%{array.section.throttle}" if array.section.throttle else ""
    flags = [
        f"--job-name={name}",
        f"--array=0-{len(array.tasks) - 1}{throttle}",
        f"--output={folder}/log/%A_%a.log",
        "--open-mode=append",
        "--requeue",
        *array.request,
    ]
    words = [sys.executable, "-P", "-m", "steptime.run.slurm.driver", str(folder)]
    return "\n".join(
        [
            "#!/bin/bash",
            *(f"#SBATCH {_quoted(flag)}" for flag in flags),
            *array.section.setup,
            *(
                f"export {variable}={shlex.quote(value)}"
                for variable, value in array.section.environment
            ),
            f"export STEPTIME_MACHINE={shlex.quote(str(folder / 'machine.toml'))}",
            f"exec {shlex.join(words)}",
            "",
        ]
    )


def _quoted(flag: str) -> str:
    """sbatch reads its lines as words: blanks in a folder's name need quotes."""
    return f'"{flag}"' if " " in flag else flag
