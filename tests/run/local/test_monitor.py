from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from steptime.analysis.usage import usage
from steptime.core.case import Case
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.run.local import LocalExecutor
from steptime.run.local.launch import InterpreterLaunch
from steptime.run.local.process import WorkerProcess
from steptime.store import monitor_log
from steptime.store.folder import FolderStore
from steptime.store.journal import uuid7

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("misbehaving", "no_orphans")]
MakeJob = Callable[..., Job]


@pytest.fixture
def make_job(short: Protocol) -> MakeJob:
    def make(framework: str = "calm", seconds: float = 0.1, **protocol: float) -> Job:
        case = Case(workload="mnist-mlp", framework=framework, batch_size=4)
        changed = replace(short, monitor_seconds=seconds, **protocol)  # type: ignore[arg-type]
        return Job(id=uuid7(), session="s", plan="p", process=0, case=case, protocol=changed)

    return make


def files(store: FolderStore) -> list[str]:
    return sorted(path.suffix for path in store.path.glob("journal/*/*/*/*"))


def test_monitor_series_is_in_the_record(store: FolderStore, make_job: MakeJob) -> None:
    attempt = LocalExecutor().run(make_job(least_seconds=1.0), store)
    assert (
        attempt.failure is None and attempt.measurement is not None and files(store) == [".jsonl"]
    )
    found, told = usage(attempt), attempt.findings["monitor"]
    assert (
        found is not None and found["cpus"]["mean"] > 0 and found["memory_bytes"]["most"] > 1 << 20
    )
    assert told["interval_seconds"] == 0.1 and told["cost"]["cpu_seconds"] > 0
    first, last = attempt.measurement.stamps[0], attempt.measurement.stamps[-1]
    assert (
        told["first_ns"] < last and told["first_ns"] + 1e9 * told["columns"]["seconds"][-1] > first
    )


def test_monitor_is_off_by_default(store: FolderStore, make_job: MakeJob) -> None:
    assert "monitor" not in LocalExecutor().run(make_job(seconds=0.0), store).findings


def test_monitor_series_is_in_the_record_of_a_failure(
    store: FolderStore, make_job: MakeJob
) -> None:
    attempt = LocalExecutor().run(make_job("hangs", limit_seconds=3.0), store)
    assert attempt.failure is not None and attempt.failure.cause == "timed_out"
    assert len(
        attempt.findings["monitor"]["columns"]["memory_bytes"]
    ) > 2 and ".monitor" not in files(store)


def test_killed_monitor_costs_no_measurement(store: FolderStore, make_job: MakeJob) -> None:
    worker = WorkerProcess.start(
        InterpreterLaunch((LocalExecutor().python,)), make_job(least_seconds=1.0), store
    )
    assert worker.monitor is not None
    os.kill(worker.monitor.pid, signal.SIGKILL)
    worker.monitor.wait()
    with worker.supervise():
        worker.wait()
    attempt = worker.attempt()
    assert attempt.measurement is not None and attempt.failure is None
    assert len(attempt.findings["monitor"]["columns"].get("seconds", [])) <= 1


def test_monitor_ends_with_its_worker(store: FolderStore, make_job: MakeJob) -> None:
    worker = WorkerProcess.start(
        InterpreterLaunch((LocalExecutor().python,)), make_job("hangs"), store
    )
    assert worker.monitor is not None
    while not monitor_log.log_path(worker.files.journal).stat().st_size:
        time.sleep(0.05)
    os.kill(worker.process.pid, signal.SIGKILL)
    assert worker.monitor.wait(30) == 0
    with worker.supervise():
        worker.wait()
    assert worker.attempt().findings["monitor"]["columns"]["processes"][0] == 1


def test_monitor_that_cannot_start_costs_no_measurement(
    store: FolderStore, make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = LocalExecutor()
    monkeypatch.setattr("sys.executable", "/no/such/python")
    attempt = executor.run(make_job(), store)
    assert (
        attempt.measurement is not None
        and attempt.findings["monitor"]["problem"] == "The monitor wrote no readings."
    )
