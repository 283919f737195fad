from __future__ import annotations

from pathlib import Path

from steptime.core.case import Case
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.plan.machine_file import parse
from steptime.run.slurm.script import make_arrays, write_script
from steptime.store.journal import uuid7

MACHINE = parse(
    """
[slurm.a]
gres = "gpu:{devices}"
bundle = 2
throttle = 3
setup = ["module load x"]
environment = { A = "b c" }
""",
    "machine.toml",
    (),
)


def jobs(sizes: range, processes: int = 1, devices: int = 1) -> list[Job]:
    cases = [Case(workload="mnist-mlp", batch_size=size, devices=devices) for size in sizes]
    return [
        Job(id=uuid7(), session="s", plan="p", process=process, case=case, protocol=Protocol())
        for case in cases
        for process in range(processes)
    ]


def test_make_arrays_groups_equal_requests() -> None:
    found = make_arrays([*jobs(range(1, 4)), *jobs(range(1, 3), devices=2)], MACHINE, 100)
    assert [array.request for array in found] == [("--gres=gpu:1",), ("--gres=gpu:2",)]
    assert [[len(task) for task in array.tasks] for array in found] == [[2, 1], [2]]


def test_make_arrays_numbers_the_processes_in_their_order() -> None:
    """So a result knows how many processes of other cases ran between two of its own."""
    [array] = make_arrays(jobs(range(1, 4)), MACHINE, 100)
    assert [job.environment["session_process"] for job in array.jobs] == list(
        range(len(array.jobs))
    )


def test_make_arrays_respects_the_largest_array() -> None:
    found = make_arrays(jobs(range(1, 11)), MACHINE, 2)
    assert [len(array.tasks) for array in found] == [2, 2, 1]


def test_make_arrays_alternates_cases() -> None:
    (array,) = make_arrays(jobs(range(1, 9), processes=2), MACHINE, 100)
    assert [job.process for job in array.jobs] == [0] * 8 + [1] * 8
    assert [job.case.batch_size for job in array.jobs[:8]] != list(range(1, 9))


def test_make_arrays_shuffles_each_array_differently() -> None:
    found = make_arrays(
        [job for devices in (1, 2, 4) for job in jobs(range(1, 9), devices=devices)], MACHINE, 100
    )
    orders = {tuple(job.case.batch_size for job in array.jobs) for array in found}
    assert len(orders) == len(found) == 3


def test_write_script_loads_modules_and_starts_the_driver() -> None:
    (array,) = make_arrays(jobs(range(1, 9)), MACHINE, 100)
    lines = write_script(array, Path("/a folder/0000"), "steptime-x").splitlines()
    assert "#SBATCH --array=0-3%3" in lines and "#SBATCH --open-mode=append" in lines
    assert '#SBATCH "--output=/a folder/0000/log/%A_%a.log"' in lines
    assert lines.index("module load x") < lines.index("export A='b c'") < len(lines) - 1
    assert lines[-1].startswith("exec ") and lines[-1].endswith(
        "steptime.run.slurm.driver '/a folder/0000'"
    )
