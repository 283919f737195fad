"""Group jobs into arrays, and write the shell script of an array. Calls nothing."""

from __future__ import annotations

import random
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from steptime.core.job import Job
from steptime.core.secrets import redact, redact_environment, redact_words
from steptime.plan.machine_file import MachineFile
from steptime.plan.slurm_section import Section


@dataclass(frozen=True)
class Array:
    """Tasks that ask the same of Slurm."""

    section: Section
    request: tuple[str, ...]
    tasks: tuple[tuple[Job, ...], ...]

    @property
    def jobs(self) -> list[Job]:
        return [job for task in self.tasks for job in task]


def make_arrays(jobs: Sequence[Job], machine: MachineFile, most_tasks: int) -> list[Array]:
    """Cases in random order, each once before any comes again.

    So the processes of a bundle belong to different cases, which are compared on one node."""
    groups: dict[tuple[Section, tuple[str, ...]], list[Job]] = {}
    for job in jobs:
        section = machine.section(job.case.node_type)
        groups.setdefault((section, section.request(job.case)), []).append(job)
    arrays = []
    for (section, request), group in groups.items():
        tasks = _bundle(_shuffle(group, section, request), section.bundle)
        for first in range(0, len(tasks), most_tasks):
            arrays.append(Array(section, request, tuple(tasks[first : first + most_tasks])))
    return arrays


def _shuffle(jobs: list[Job], section: Section, request: tuple[str, ...]) -> list[Job]:
    # Each array has an order of its own. If all had the same, a change in time would look like a
    # difference between cases.
    rng = random.Random(" ".join((jobs[0].session, section.name, *request)))
    shuffled = sorted(rng.sample(jobs, len(jobs)), key=lambda job: job.process)
    numbered = []
    for number, job in enumerate(shuffled):
        environment = {**job.environment, "session_process": number}
        numbered.append(replace(job, environment=environment))
    return numbered


def _bundle(jobs: list[Job], size: int) -> list[tuple[Job, ...]]:
    return [tuple(jobs[first : first + size]) for first in range(0, len(jobs), size)]


def without_secrets(array: Array) -> Array:
    """For a preview, which is printed and passed on."""
    section = array.section
    environment = redact_environment(dict(section.environment))
    shown = replace(
        section, environment=tuple(environment.items()), setup=tuple(redact(section.setup))
    )
    return replace(array, section=shown, request=tuple(redact_words(array.request)))


def write_script(array: Array, folder: Path, name: str) -> str:
    """The text of the script that sbatch gets."""
    throttle = f"%{array.section.throttle}" if array.section.throttle else ""
    flags = [
        f"--job-name={name}",
        f"--array=0-{len(array.tasks) - 1}{throttle}",
        f"--output={folder}/log/%A_%a.log",
        # A requeued task continues the same log.
        "--open-mode=append",
        "--requeue",
        *array.request,
    ]
    lines = ["#!/bin/bash"]
    lines += [f"#SBATCH {_quote(flag)}" for flag in flags]
    lines += array.section.setup
    for variable, value in array.section.environment:
        lines.append(f"export {variable}={shlex.quote(value)}")
    lines.append(f"export STEPTIME_MACHINE={shlex.quote(str(folder / 'machine.toml'))}")
    driver = [sys.executable, "-P", "-m", "steptime.run.slurm.driver", str(folder)]
    # With exec, Slurm's signals reach the driver.
    lines.append(f"exec {shlex.join(driver)}")
    return "\n".join(lines) + "\n"


def _quote(flag: str) -> str:
    """sbatch splits its lines at blanks, which a folder's name may contain."""
    return f'"{flag}"' if " " in flag else flag
