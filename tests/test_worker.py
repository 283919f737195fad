from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from steptime import worker
from steptime.core.case import Case
from steptime.core.job import Job
from steptime.core.protocol import Protocol
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
    return subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=60)


@pytest.mark.live
@pytest.mark.usefixtures("misbehaving")
def test_started_by_hand_it_measures_and_prints_nothing(orders: Path, tmp_path: Path) -> None:
    done = start(str(orders), str(tmp_path / "a.jsonl"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    attempt = read(tmp_path / "a.jsonl")
    assert attempt is not None and attempt.measurement is not None and attempt.machine


@pytest.mark.live
def test_a_worker_whose_parent_is_gone_does_nothing(orders: Path, tmp_path: Path) -> None:
    done = start(str(orders), str(tmp_path / "a.jsonl"), STEPTIME_PARENT="1")
    assert done.returncode == 1 and "is gone" in done.stderr
    assert not (tmp_path / "a.jsonl").exists()


@pytest.mark.live
def test_a_journal_that_is_there_already_is_left_alone(orders: Path, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("precious")
    done = start(str(orders), str(tmp_path / "a.jsonl"))
    assert done.returncode == 1 and "File exists" in done.stderr and "Traceback" not in done.stderr
    assert (tmp_path / "a.jsonl").read_text() == "precious"


@pytest.mark.live
@pytest.mark.usefixtures("misbehaving")
def test_a_full_disk_is_a_failure_with_a_sentence(orders: Path, tmp_path: Path) -> None:
    text = f"""
import resource, sys
from steptime import worker
from steptime.store.journal import Journal

context = Journal.context
def full_from_here(self, **values):
    context(self, **values)
    size = self.path.stat().st_size + 400
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
Journal.context = full_from_here
sys.argv = ["worker", {str(orders)!r}, {str(tmp_path / "a.jsonl")!r}]
sys.exit(worker.main())
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    attempt = read(tmp_path / "a.jsonl")
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert attempt is not None and attempt.failure is not None and "can not be written" in attempt.failure.reason


def test_a_failure_tells_its_first_line_as_reason_and_the_end_of_its_traceback() -> None:
    try:
        raise ValueError("\n".join(f"line {number}" for number in range(100)))
    except ValueError as problem:
        failure = worker.told("crashed", problem)
    assert failure.reason == "ValueError: line 0"
    assert failure.output.splitlines() == [f"line {number}" for number in range(60, 100)]


def test_the_worker_s_own_imports_load_no_numpy_before_the_journal_begins() -> None:
    text = "import sys, steptime.worker; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", text]).returncode == 0
