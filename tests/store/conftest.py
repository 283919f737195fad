"""Small jobs and measurements, made by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from steptime.core.case import Case
from steptime.core.job import Job
from steptime.core.measurement import Block, Measurement
from steptime.core.protocol import Protocol
from steptime.store.folder import FolderStore
from steptime.store.journal import Journal, uuid7


@pytest.fixture
def make_job() -> Callable[..., Job]:
    def make(**settings: object) -> Job:
        values = {"id": uuid7(), "session": "s1", "plan": "p1", "process": 0, "case": Case(workload="mnist-mlp")}
        return Job(**{**values, "protocol": Protocol(), **settings})  # type: ignore[arg-type]

    return make


@pytest.fixture
def measurement() -> Measurement:
    def block(samples: int) -> Block:
        counts = {"cpu_ns": 7, "faults": 1, "major_faults": 0, "switches": 2, "involuntary_switches": 0}
        return Block(samples=samples, host_ns=30, dispatch_ns=20, **counts)

    return Measurement(
        group=1,
        stamps=(100, 110, 125, 131, 150),
        device_ns=(9, 14, 5, 18),
        blocks=(block(3), block(1)),
        cut=1,
        steady=True,
        clock={"cost_ns": 50},
        starts={"import": 0.5},
        facts={"word": "Größe"},
    )


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "results")


@pytest.fixture
def keep(store: FolderStore, measurement: Measurement) -> Callable[[Job], Path]:
    """Puts a whole attempt into the store."""

    def write(job: Job) -> Path:
        path = store.journal(job.id)
        with Journal(path) as journal:
            journal.begin(job)
            journal.context(machine={"cpu": "x"}, software={"python": "3"}, network={"fingerprint": "f"})
            journal.measured(measurement)
        return path

    return write
