from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from factories import kept_blocks, kept_ns
from steptime.core.case import Case
from steptime.core.errors import SteptimeError
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.core.record import Attempt
from steptime.machine.leftovers import end_leftovers
from steptime.run.local import LocalExecutor, process
from steptime.run.local.environment import worker_environment
from steptime.run.local.launch import InterpreterLaunch
from steptime.run.local.process import WorkerProcess, cut_log
from steptime.store.folder import FolderStore
from steptime.store.journal import uuid7

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("misbehaving", "no_orphans")]
MakeJob = Callable[..., Job]


@pytest.fixture
def make_job(short: Protocol) -> MakeJob:
    def make(framework: str = "calm", *, protocol: Protocol = short, **settings: object) -> Job:
        case = Case(workload="mnist-mlp", framework=framework, batch_size=4, **settings)
        return Job(id=uuid7(), session="s", plan="p", process=0, case=case, protocol=protocol)

    return make


def files(store: FolderStore) -> list[str]:
    return sorted(path.suffix for path in store.path.glob("journal/*/*/*/*"))


def test_run_leaves_only_the_journal(store: FolderStore, make_job: MakeJob) -> None:
    job = make_job()
    attempt = LocalExecutor().run(job, store)
    assert attempt.failure is None and attempt.measurement is not None
    assert attempt.id == job.id and len(kept_ns(attempt.measurement)) >= 5
    assert {"import", "build", "first_step"} <= set(attempt.measurement.starts)
    assert attempt.software["misbehaving"] == "1" and attempt.network["fingerprint"]
    assert store.attempts() == [attempt] and files(store) == [".jsonl"]


def test_run_records_the_environment_of_the_worker(store: FolderStore, make_job: MakeJob) -> None:
    attempt = LocalExecutor().run(make_job(threads=1), store)
    assert attempt.measurement is not None
    assert attempt.measurement.facts["PYTHONHASHSEED"] == attempt.environment["PYTHONHASHSEED"]
    assert attempt.measurement.facts["OMP_NUM_THREADS"] == "1"


def test_cold_cache_is_removed_after_the_run(
    store: FolderStore, make_job: MakeJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    attempts = [
        LocalExecutor().run(make_job(compile_cache="cold", trial=trial), store)
        for trial in range(2)
    ]
    used = {
        attempt.measurement.facts["TORCHINDUCTOR_CACHE_DIR"]
        for attempt in attempts
        if attempt.measurement
    }
    assert len(used) == 2 and all(Path(folder).parents[1] == tmp_path for folder in used)
    assert not list(tmp_path.glob("steptime-cold-*"))


@pytest.mark.parametrize(
    "framework, cause, reason, output",
    [
        ("segfault", "crashed", "killed by SIGSEGV", "Segmentation fault"),
        ("killed", "crashed", "killed by SIGKILL", ""),
        ("leaves", "crashed", "exit code 3", ""),
        ("prints", "crashed", "exit code 7", "line 999"),
        ("fails", "crashed", "RuntimeError: boom", 'raise RuntimeError("boom")'),
        ("grows", "out_of_memory", "MemoryError", "bytearray"),
        ("full", "out_of_memory", "tried to allocate 7 GiB", "run_out_of_device_memory"),
        ("absent", "not_installed", "pip install 'a-package-that-nobody-has>=2'", ""),
    ],
)
def test_run_records_the_cause_and_the_end_of_the_output(
    framework: str, cause: str, reason: str, output: str, store: FolderStore, make_job: MakeJob
) -> None:
    failure = LocalExecutor().run(make_job(framework), store).failure
    assert failure is not None and failure.cause == cause
    assert reason in failure.reason and output in failure.output
    assert len(failure.output.splitlines()) <= 40 and "\n" not in failure.reason


def test_run_records_why_a_case_is_unsupported(store: FolderStore, make_job: MakeJob) -> None:
    failure = LocalExecutor().run(make_job(precision="fp64"), store).failure
    assert failure is not None and (failure.cause, failure.reason[:15]) == (
        "unsupported",
        "precision fp64:",
    )


def test_run_records_an_unknown_workload_as_unsupported(
    store: FolderStore, make_job: MakeJob
) -> None:
    job = make_job()
    failure = (
        LocalExecutor()
        .run(replace(job, case=replace(job.case, workload="mnist-mpl")), store)
        .failure
    )
    assert (
        failure is not None and failure.cause == "unsupported" and "'mnist-mlp'" in failure.reason
    )


def test_run_ends_a_worker_that_hangs(
    store: FolderStore, make_job: MakeJob, short: Protocol
) -> None:
    failure = (
        LocalExecutor()
        .run(make_job("hangs", protocol=replace(short, limit_seconds=3.0)), store)
        .failure
    )
    assert failure is not None and (failure.cause, "3 s" in failure.reason) == ("timed_out", True)
    assert "raise protocol.limit_seconds" in failure.reason


def test_staged_copies_of_a_killed_worker_are_removed(
    store: FolderStore, make_job: MakeJob, tiny_mnist: Path, tmp_path: Path
) -> None:
    (tmp_path / "tier" / "others").mkdir(parents=True)
    job = replace(make_job("killed", staging="fast"), options={"tier": str(tmp_path / "tier")})
    worker = WorkerProcess.start(InterpreterLaunch((sys.executable,)), job, store)
    with worker.supervise():
        worker.wait()
    failure = worker.attempt().failure
    assert failure is not None and "SIGKILL" in failure.reason
    assert [path.name for path in (tmp_path / "tier").iterdir()] == ["others"]


def told_to_end(worker: WorkerProcess, *, then_us: bool) -> None:
    """As Slurm tells every process of a job, one behind the other."""

    def tell() -> None:
        os.kill(worker.process.pid, signal.SIGTERM)
        time.sleep(0.3)
        if then_us:
            os.kill(os.getpid(), signal.SIGTERM)

    teller = threading.Thread(target=tell)
    teller.start()
    try:
        with worker.supervise():
            worker.wait()
    finally:
        teller.join()  # its signal must not meet whoever comes next


def test_wait_gives_precedence_to_a_signal_to_the_parent(
    store: FolderStore, make_job: MakeJob
) -> None:
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        worker = WorkerProcess.start(InterpreterLaunch((sys.executable,)), make_job("hangs"), store)
        with pytest.raises(KeyboardInterrupt):
            told_to_end(worker, then_us=True)
    finally:
        signal.signal(signal.SIGTERM, before)
    failure = worker.attempt().failure
    assert failure is not None and failure.cause == "cancelled"


def test_worker_that_alone_gets_sigterm_has_crashed(store: FolderStore, make_job: MakeJob) -> None:
    worker = WorkerProcess.start(InterpreterLaunch((sys.executable,)), make_job("hangs"), store)
    told_to_end(worker, then_us=False)
    failure = worker.attempt().failure
    assert failure is not None and (failure.cause, "SIGTERM" in failure.reason) == ("crashed", True)


def test_children_of_a_crashed_worker_are_ended(
    store: FolderStore, make_job: MakeJob, is_gone: Callable[[int], bool]
) -> None:
    failure = LocalExecutor().run(make_job("parent"), store).failure
    assert failure is not None
    child = next(
        line.split()[1] for line in failure.output.splitlines() if line.startswith("child")
    )
    assert is_gone(int(child))


def test_children_in_their_own_session_are_ended(
    store: FolderStore, make_job: MakeJob, is_gone: Callable[[int], bool]
) -> None:
    job = make_job("emigrant")
    failure = LocalExecutor().run(job, store).failure
    assert failure is not None
    child = next(
        line.split()[1] for line in failure.output.splitlines() if line.startswith("child")
    )
    assert is_gone(int(child)) and end_leftovers(job.id) == 0


def test_worker_that_gets_sighup_is_cancelled(store: FolderStore, make_job: MakeJob) -> None:
    worker = WorkerProcess.start(InterpreterLaunch((sys.executable,)), make_job("hangs"), store)
    worker.process.send_signal(signal.SIGHUP)
    worker.wait()
    failure = worker.attempt().failure
    assert failure is not None and (failure.cause, "SIGHUP" in failure.reason) == (
        "cancelled",
        True,
    )


@pytest.mark.parametrize("kills", [3, None])
def test_kill_is_no_lack_of_memory_if_only_others_lack_it(
    store: FolderStore, make_job: MakeJob, monkeypatch: pytest.MonkeyPatch, kills: int | None
) -> None:
    monkeypatch.setattr("steptime.run.local.process.count_oom_kills", lambda: kills)
    failure = LocalExecutor().run(make_job("killed"), store).failure
    assert failure is not None and failure.cause == "crashed"


def test_oom_kill_is_out_of_memory(
    store: FolderStore, make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = iter([3, 4])
    monkeypatch.setattr("steptime.run.local.process.count_oom_kills", lambda: next(counts))
    failure = LocalExecutor().run(make_job("killed"), store).failure
    assert failure is not None and failure.cause == "out_of_memory"


def test_supervise_ends_the_worker_on_an_interrupt(
    store: FolderStore, make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Raised inside the wait; test_kills.py sends a real signal to a whole command."""

    def interrupted(worker: WorkerProcess, file: int) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(WorkerProcess, "_readable", interrupted)
    with pytest.raises(KeyboardInterrupt):
        LocalExecutor().run(make_job("hangs"), store)
    [attempt] = store.attempts()
    assert attempt.failure is not None and attempt.failure.cause == "cancelled"


def test_run_explains_a_missing_interpreter(store: FolderStore, make_job: MakeJob) -> None:
    with pytest.raises(SteptimeError, match="could not be started"):
        LocalExecutor("/no/such/python").run(make_job(), store)


def test_parent_sleeps_while_a_worker_measures(
    store: FolderStore, make_job: MakeJob, short: Protocol
) -> None:
    """A parent that polls is woken every time, and one that spins uses the CPU."""
    job = make_job(protocol=replace(short, least_seconds=3.0))
    before, wall = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    LocalExecutor().run(job, store)
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert after.ru_nvcsw - before.ru_nvcsw < 50
    assert after.ru_utime - before.ru_utime < 0.1 * (time.monotonic() - wall)


NEW_ARRAYS = """
import resource
def faults_so_far():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
faults = [bytearray(64 << 20) and faults_so_far() for _ in range(4)]
print(faults[3] - faults[1])
"""


def test_pinned_allocator_keeps_large_arrays_in_the_heap(make_job: MakeJob) -> None:
    """A new array of 64 MiB costs up to 16,384 page faults if its memory was given back."""
    faults = {}
    for profile in ("pinned", "stock"):
        variables, _ = worker_environment(make_job(allocator=profile), os.environ)
        done = subprocess.run(
            [sys.executable, "-c", NEW_ARRAYS], env=variables, capture_output=True, check=True
        )
        faults[profile] = int(done.stdout)
    assert 20 * faults["pinned"] < faults["stock"]


class TestResident:
    def test_turn_measures_one_block(self, store: FolderStore, make_job: MakeJob) -> None:
        resident = LocalExecutor().resident(make_job(), store)
        assert resident.alive and all(resident.turn() for _ in range(3))
        measurement = resident.stop().measurement
        assert measurement is not None and len(kept_blocks(measurement)) == 3
        assert sum(block.samples for block in kept_blocks(measurement)) == len(kept_ns(measurement))

    def test_turn_excludes_the_wait_before_it(self, store: FolderStore, make_job: MakeJob) -> None:
        resident = LocalExecutor().resident(make_job(), store)
        time.sleep(1.0)
        resident.turn()
        time.sleep(1.0)
        resident.turn()
        measurement = resident.stop().measurement
        assert measurement is not None and sum(kept_ns(measurement)) < 0.8e9

    def test_output_of_the_framework_is_no_answer(
        self, store: FolderStore, make_job: MakeJob
    ) -> None:
        resident = LocalExecutor().resident(make_job("chatty"), store)
        assert resident.alive and resident.turn()
        assert resident.stop().failure is None

    @pytest.mark.parametrize(
        "framework, cause", [("segfault", "crashed"), ("absent", "not_installed")]
    )
    def test_resident_that_never_gets_warm_says_why(
        self, framework: str, cause: str, store: FolderStore, make_job: MakeJob
    ) -> None:
        resident = LocalExecutor().resident(make_job(framework), store)
        assert not resident.alive and not resident.turn()
        failure = resident.stop().failure
        assert failure is not None and failure.cause == cause

    def test_resident_that_hangs_is_ended(
        self, store: FolderStore, make_job: MakeJob, short: Protocol
    ) -> None:
        resident = LocalExecutor().resident(
            make_job("hangs", protocol=replace(short, limit_seconds=3.0)), store
        )
        assert not resident.alive
        failure = resident.stop().failure
        assert failure is not None and failure.cause == "timed_out"

    def test_cancel_records_the_cause(self, store: FolderStore, make_job: MakeJob) -> None:
        attempt: Attempt = LocalExecutor().resident(make_job(), store).cancel("No partner.")
        assert attempt.failure is not None and attempt.failure.cause == "cancelled"


def test_log_of_a_worker_that_prints_for_ever_is_cut(
    store: FolderStore, make_job: MakeJob, short: Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[tuple[int, int]] = []

    def watch_log(log: Path) -> None:
        before = log.stat().st_size
        cut_log(log)
        sizes.append((before, log.stat().st_size))

    monkeypatch.setattr(process, "LOG_CHECK_SECONDS", 0.2)
    monkeypatch.setattr(process, "MOST_LOG_BYTES", 20_000_000)
    monkeypatch.setattr(process, "cut_log", watch_log)
    job = make_job("babbles", protocol=replace(short, limit_seconds=6.0))
    failure = LocalExecutor().run(job, store).failure
    assert failure is not None and failure.cause == "timed_out" and "xxx" in failure.output
    too_long = [(before, after) for before, after in sizes if before > 20_000_000]
    # After a cut there is the end, and what the worker has written meanwhile.
    assert too_long and all(after < before for before, after in too_long)


def test_cut_log_keeps_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "MOST_LOG_BYTES", 100)
    monkeypatch.setattr(process, "KEPT_LOG_BYTES", 10)
    log = tmp_path / "log"
    log.write_bytes(b"a" * 200 + b"0123456789")
    cut_log(log)
    assert log.read_bytes() == process.LOG_IS_CUT + b"0123456789"
