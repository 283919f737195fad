"""A store, cases, and an executor that writes real journals without starting processes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.core.job import Job
from steptime.core.measurement import Block, Measurement
from steptime.core.record import Attempt, Failure
from steptime.store import reader
from steptime.store.folder import FolderStore
from steptime.store.journal import Journal


class FakeExecutor:
    """Follows the script of a batch size, one word per process, and measures after its end."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.scripts: dict[int, Iterator[str]] = defaultdict(lambda: iter(()))
        self.findings: dict[str, Any] = {}

    def run(self, job: Job, store: FolderStore) -> Attempt:
        self.jobs.append(job)
        word = next(self.scripts[job.case.batch_size], "")
        if word == "interrupted":
            raise KeyboardInterrupt
        with Journal(path := store.journal(job.id)) as journal:
            journal.begin(job)
            if word:
                journal.write_failure(Failure(cause=Cause(word), reason="As the script says."))
            else:
                journal.write_measurement(self.measurement(len(self.jobs)), self.findings)
        attempt = reader.read(path)
        assert attempt is not None
        return attempt

    def measurement(self, seed: int) -> Measurement:
        times = np.random.default_rng(seed).normal(1e6, 1e4, 100).astype(int)
        counts = {
            "cpu_ns": 7,
            "faults": 1,
            "major_faults": 0,
            "switches": 2,
            "involuntary_switches": 0,
        }
        block = Block(samples=100, host_ns=int(times.sum()), dispatch_ns=int(times.sum()), **counts)
        stamps = [0, *np.cumsum(times).tolist()]
        starts = {"import": 0.1}
        return Measurement(
            group=1,
            stamps=stamps,
            device_ns=None,
            blocks=(block,),
            cut=0,
            steady=True,
            clock={},
            starts=starts,
        )


@pytest.fixture
def executor(monkeypatch: pytest.MonkeyPatch) -> FakeExecutor:
    fake = FakeExecutor()
    monkeypatch.setattr("steptime.run.local.LocalExecutor", lambda: fake)
    return fake


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "results")


@pytest.fixture
def make_case() -> Callable[..., Case]:
    def make(batch_size: int = 4, **settings: object) -> Case:
        return Case(
            **{"workload": "mnist-mlp", "framework": "calm", "batch_size": batch_size, **settings}
        )  # type: ignore[arg-type]

    return make
