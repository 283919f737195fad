from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from steptime import worker
from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.core.record import Attempt
from steptime.store.journal import uuid7
from steptime.store.reader import read


@pytest.fixture
def orders(tmp_path: Path, short: Protocol) -> Path:
    case = Case(workload="mnist-mlp", framework="calm", batch_size=4)
    job = Job(id=uuid7(), session="s", plan="p", process=0, case=case, protocol=short)
    path = tmp_path / "case.json"
    path.write_text(json.dumps(job.to_dict()))
    return path


def start(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "steptime.worker", *arguments]
    return subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=60
    )


@pytest.mark.live
@pytest.mark.usefixtures("misbehaving")
def test_worker_started_by_hand_prints_nothing(orders: Path, tmp_path: Path) -> None:
    done = start(str(orders), str(tmp_path / "a.jsonl"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    attempt = read(tmp_path / "a.jsonl")
    assert attempt is not None and attempt.measurement is not None and attempt.machine


@pytest.mark.live
def test_worker_exits_if_parent_is_gone(orders: Path, tmp_path: Path) -> None:
    done = start(str(orders), str(tmp_path / "a.jsonl"), STEPTIME_PARENT="1")
    assert done.returncode == 1 and "is gone" in done.stderr
    assert not (tmp_path / "a.jsonl").exists()


@pytest.mark.live
def test_worker_leaves_existing_journal_alone(orders: Path, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("precious")
    done = start(str(orders), str(tmp_path / "a.jsonl"))
    assert done.returncode == 1 and "File exists" in done.stderr and "Traceback" not in done.stderr
    assert (tmp_path / "a.jsonl").read_text() == "precious"


@pytest.mark.live
@pytest.mark.usefixtures("misbehaving")
def test_worker_records_full_disk_as_no_space(orders: Path, tmp_path: Path) -> None:
    text = f"""
import resource, sys
from steptime import worker
from steptime.store.journal import Journal

context = Journal.write_context
def full_from_here(self, **values):
    context(self, **values)
    size = self.path.stat().st_size + 400
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
Journal.write_context = full_from_here
sys.argv = ["worker", {str(orders)!r}, {str(tmp_path / "a.jsonl")!r}]
sys.exit(worker.main())
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    attempt = read(tmp_path / "a.jsonl")
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert (
        attempt is not None
        and attempt.failure is not None
        and attempt.failure.cause == Cause.NO_SPACE
        and "cannot be written" in attempt.failure.reason
    )


def test_describe_failure_has_first_line_and_end_of_traceback() -> None:
    try:
        raise ValueError("\n".join(f"line {number}" for number in range(100)))
    except ValueError as problem:
        failure = worker.describe_failure(Cause.CRASHED, problem)
    assert failure.reason == "ValueError: line 0"
    assert failure.output.splitlines() == [f"line {number}" for number in range(60, 100)]


def test_worker_imports_no_numpy_before_journal_begins() -> None:
    text = "import sys, steptime.worker; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", text]).returncode == 0


BY_ANOTHER_LAUNCHER = """
import os, subprocess, sys
from steptime.ranks.launcher import find_free_port
port = str(find_free_port())
names = [f"OMPI_COMM_WORLD_{name}" for name in ("RANK", "SIZE", "LOCAL_RANK")]
own = [dict(os.environ, MASTER_PORT=port, **dict(zip(names, (rank, "2", rank)))) for rank in "01"]
ranks = [subprocess.Popen(sys.argv[1:], env=variables) for variables in own]
sys.exit(max(rank.wait() for rank in ranks))
"""  # as mpirun does it
Ran = Callable[..., tuple[Attempt, subprocess.CompletedProcess[str]]]


@pytest.fixture
def run_ranks(tmp_path: Path, short: Protocol, misbehaving: None, no_orphans: None) -> Ran:
    """A case of two independent ranks, run by the worker that its parent starts."""

    def run(
        framework: str, *wrapper: str, **changes: Any
    ) -> tuple[Attempt, subprocess.CompletedProcess[str]]:
        settings = {
            "workload": "mnist-mlp",
            "batch_size": 4,
            "exchange": "independent",
            "devices": 2,
            **changes,
        }
        case = Case(framework=framework, **settings)
        job = Job(id=uuid7(), session="s", plan="p", process=0, case=case, protocol=short)
        orders, journal = tmp_path / "ranks.json", tmp_path / "ranks.jsonl"
        orders.write_text(json.dumps(job.to_dict()))
        command = [*wrapper, sys.executable, "-m", "steptime.worker", str(orders), str(journal)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        attempt = read(journal)
        assert attempt is not None
        assert sorted(path.name for path in tmp_path.glob("ranks*")) == [
            "ranks.json",
            "ranks.jsonl",
        ]
        return attempt, done

    return run


@pytest.mark.live
def test_worker_ranks_run_equal_steps_and_are_recorded(run_ranks: Ran) -> None:
    attempt, done = run_ranks("calm")
    measurement = attempt.measurement
    assert measurement is not None and (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [rank.rank for rank in measurement.ranks] == [0, 1]
    assert {len(rank.stamps) for rank in measurement.ranks} == {len(measurement.stamps)}
    assert {len(rank.idle_ns) for rank in measurement.ranks} == {len(measurement.blocks)}
    assert [rank.device for rank in measurement.ranks] == ["cpu", "cpu"]
    assert attempt.network["units_per_step"] == {"images": 8}


@pytest.mark.live
def test_worker_step_is_that_of_slowest_rank(run_ranks: Ran) -> None:
    measurement = run_ranks("lame_second")[0].measurement
    assert measurement is not None
    first, second = (sum(_steps(rank.stamps)) for rank in measurement.ranks)
    assert second > 1.5 * first
    assert sum(measurement.samples_ns) == pytest.approx(second, rel=0.1)
    assert sum(block.host_ns for block in measurement.blocks) == sum(measurement.samples_ns)


@pytest.mark.live
@pytest.mark.parametrize(
    ("framework", "cause", "reason"),
    [
        ("full_second", "out_of_memory", "Rank 1 of 2: MemoryError: device: out of memory"),
        ("killed_second", "crashed", "Rank 1 of 2 was killed by SIGKILL."),
        ("gone_second", "crashed", "Rank 1 of 2 ended with exit code 3"),
        ("fails", "crashed", "RuntimeError: boom"),
    ],
)
def test_worker_lost_rank_ends_all_with_its_cause(
    run_ranks: Ran, framework: str, cause: str, reason: str
) -> None:
    attempt, done = run_ranks(framework)
    assert attempt.failure is not None and attempt.measurement is None
    assert (attempt.failure.cause, done.returncode) == (
        cause,
        0,
    ) and reason in attempt.failure.reason


@pytest.mark.live
def test_worker_unsupported_case_names_no_rank(run_ranks: Ran) -> None:
    failure = run_ranks("calm", precision="fp64")[0].failure
    assert failure is not None and failure.reason == "precision fp64: not in this framework"


@pytest.mark.live
def test_worker_refuses_exchange_that_framework_lacks(run_ranks: Ran) -> None:
    failure = run_ranks("calm", exchange="allreduce")[0].failure
    assert (
        failure is not None
        and failure.reason == "calm has no exchange=allreduce here; use exchange=independent."
    )


@pytest.mark.live
def test_worker_refuses_several_nodes_without_slurm(
    run_ranks: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    failure = run_ranks("calm", nodes=2)[0].failure
    assert (
        failure is not None
        and failure.cause == "unsupported"
        and "steptime submit" in failure.reason
    )


@pytest.mark.live
def test_worker_ranks_leave_existing_journal_alone(orders: Path, tmp_path: Path) -> None:
    job = json.loads(orders.read_text())
    job["case"] |= {"exchange": "independent", "devices": 2}
    orders.write_text(json.dumps(job))
    (tmp_path / "a.jsonl").write_text("precious")
    done = start(str(orders), str(tmp_path / "a.jsonl"))
    assert (
        done.returncode == 1 and "already exists" in done.stderr and "Traceback" not in done.stderr
    )
    assert (tmp_path / "a.jsonl").read_text() == "precious"


@pytest.mark.live
def test_worker_accepts_ranks_of_another_launcher(run_ranks: Ran) -> None:
    attempt, done = run_ranks("calm", sys.executable, "-c", BY_ANOTHER_LAUNCHER)
    assert (
        attempt.measurement is not None
        and len(attempt.measurement.ranks) == 2
        and done.returncode == 0
    )


@pytest.mark.live
def test_worker_first_failing_rank_of_another_launcher_is_recorded(run_ranks: Ran) -> None:
    failure = run_ranks("full_second", sys.executable, "-c", BY_ANOTHER_LAUNCHER)[0].failure
    assert (
        failure is not None and failure.cause == "out_of_memory" and "Rank 1 of 2" in failure.reason
    )


@pytest.mark.live
def test_worker_refuses_wrong_number_of_ranks(run_ranks: Ran) -> None:
    failure = run_ranks("calm", sys.executable, "-c", BY_ANOTHER_LAUNCHER, devices=3)[0].failure
    assert failure is not None and "The case has 3 ranks, but 2 were started" in failure.reason


@pytest.mark.live
@pytest.mark.usefixtures("misbehaving", "no_orphans")
def test_worker_ranks_die_with_their_launcher(
    orders: Path, tmp_path: Path, workers: Callable[[], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPTIME_TEST_GATE", str(tmp_path / "never"))
    job = json.loads(orders.read_text())
    job["case"] |= {"framework": "waits", "exchange": "independent", "devices": 2}
    orders.write_text(json.dumps(job))
    journal = tmp_path / "a.jsonl"
    with subprocess.Popen(
        [sys.executable, "-m", "steptime.worker", str(orders), str(journal)]
    ) as starter:
        while not journal.exists() or '"context"' not in journal.read_text():  # then all have met
            time.sleep(0.02)
        assert len(workers()) == 3
        starter.kill()


def _steps(stamps: Sequence[int]) -> list[int]:
    return [b - a for a, b in pairwise(stamps)]
