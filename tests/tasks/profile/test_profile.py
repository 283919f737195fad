"""The task as a worker performs it, with programs that report everything or nothing."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from steptime import workloads
from steptime.core.case import Case
from steptime.core.inspection import BETWEEN, MemoryAccount, Operator, StepProfile
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.frameworks import numpy as framework
from steptime.store import reader
from steptime.store.blobs import Blobs
from steptime.store.journal import Journal
from steptime.tasks import TaskContext
from steptime.tasks.profile import perform, trace
from steptime.tasks.profile.operators import summarise
from steptime.tasks.profile.traffic import least_bytes

pytestmark = pytest.mark.slow

CASE = Case(workload="mnist-mlp", framework="numpy", precision="fp64", batch_size=2)


class Telling:
    """A program with an invented profile."""

    def __init__(self, program: Any) -> None:
        self.program = program

    def __getattr__(self, name: str) -> Any:
        return getattr(self.program, name)

    def profile(self, steps: int) -> StepProfile:
        spans = [
            {"ph": "X", "name": "step", "ts": 1000.0 * n, "dur": 900.0, "pid": 1, "tid": 1}
            for n in range(steps)
        ]
        operators = (
            Operator("aten::mm", steps, 0.006),
            Operator(BETWEEN, 0, 0.002),
            Operator("odd", 1, 0.002),
        )
        return StepProfile(operators, spans, 0.01)

    def memory_account(self) -> MemoryAccount:
        return MemoryAccount({"weights": 100, "activations": 300}, "made up")


def profiled(folder: Path, short: Protocol, lower: Any) -> dict[str, Any]:
    options = {"store": str(folder)}
    job = Job(
        id="a",
        session="s",
        plan="p",
        process=0,
        case=CASE,
        protocol=short,
        task="profile",
        options=options,
    )
    with Journal(folder / "a.jsonl") as journal:
        journal.begin(job)
        fake_framework: Any = SimpleNamespace(lower=lower)
        perform(TaskContext(job, journal, fake_framework))
    attempt = reader.read(folder / "a.jsonl")
    assert attempt is not None and attempt.measurement is None
    profile: dict[str, Any] = attempt.findings["profile"]
    return profile


def test_profile_stores_what_a_program_reports(tmp_path: Path, short: Protocol) -> None:
    profile = profiled(tmp_path, short, lambda work, case: Telling(framework.lower(work, case)))
    assert profile["absent"] == {}
    assert profile["operators"]["classes"] == pytest.approx(
        {"matrix product": 0.6, "framework overhead": 0.2, "other": 0.2}
    )
    assert profile["memory"]["held_bytes"] == {"weights": 100, "activations": 300}
    packed = Blobs(tmp_path).get(profile["operators"]["trace"]["sha256"])
    assert len(json.loads(gzip.decompress(packed))["traceEvents"]) == 10


def test_profile_gives_reason_for_absent_sections(tmp_path: Path, short: Protocol) -> None:
    profile = profiled(tmp_path, short, framework.lower)
    assert set(profile["absent"]) == {"operators", "memory"}
    assert "do not report their operators" in profile["absent"]["operators"]
    assert profile["phases"]["how"] == "by difference"


def test_summarise_shares_sum_to_one() -> None:
    step_profile = StepProfile(tuple(Operator(f"op{n}", 2, 1.0) for n in range(100)), [], 10.0)
    profile = summarise(step_profile, 10, 0.5)
    listed = sum(operator["share"] for operator in profile["operators"])
    assert (
        listed + profile["unlisted_share"] == pytest.approx(1.0) and len(profile["operators"]) == 40
    )
    assert profile["perturbation"] == pytest.approx(1.0) and profile["operators"][0][
        "calls"
    ] == pytest.approx(0.2)


def test_store_trace_begins_at_zero_and_drops_other_fields(tmp_path: Path) -> None:
    events = [
        {
            "ph": "X",
            "name": "a",
            "ts": 5e9,
            "dur": 2,
            "pid": 1,
            "tid": 1,
            "args": {"secret": 1, "stream": 7},
        },
        {"ph": "X", "name": "b", "ts": 5e9 + 10, "dur": 2, "pid": 1, "tid": 1},
        {"ph": "i", "name": "instant", "ts": 0.0},
    ]
    facts = trace.store_trace(events, Blobs(tmp_path))
    first, second = json.loads(gzip.decompress(Blobs(tmp_path).get(facts["sha256"])))["traceEvents"]
    assert (first["ts"], second["ts"]) == (0, 10) and first["args"] == {"stream": 7}
    assert trace.store_trace(events, Blobs(tmp_path)) == facts  # equal traces are kept once


def test_least_bytes_of_training_exceed_forward_pass() -> None:
    work = workloads.load("mnist-mlp").build(CASE)
    forward = least_bytes(work, Case(workload="mnist-mlp", phase="inference", batch_size=2))
    training = least_bytes(work, Case(workload="mnist-mlp", batch_size=2))
    assert forward == work.graph.forward_bytes(2, 4)
    update = (
        7 * 4 * work.graph.trainable_parameters
    )  # Adam reads and writes weight, both moments, and reads a gradient
    assert 2.9 * forward < training - update < 3 * forward
