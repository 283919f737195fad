"""Fake attempts and records for tests that do not measure: a calm machine unless a change says otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from steptime.core.case import Case
from steptime.core.job import Job
from steptime.core.measurement import Block, Measurement
from steptime.core.protocol import preset
from steptime.core.record import Attempt, Record
from steptime.store.folder import FolderStore
from steptime.store.journal import Journal, uuid7


def make_attempt(
    times_ns: Sequence[int], *, cut: int = 0, blocks: int = 10, **changes: Any
) -> Attempt:
    """Fields of Block, Measurement, Case and Attempt may be given by name; the rest is a calm machine."""
    stamps = np.concatenate([[0], np.cumsum(np.asarray(times_ns, dtype=np.int64))]).tolist()
    ends = np.linspace(0, len(times_ns), blocks + 1).astype(int).tolist()
    block, case, measured = (_taken(kind, changes) for kind in (Block, Case, Measurement))
    made = tuple(
        make_block(last - first, stamps[last] - stamps[first], block)
        for first, last in pairwise(ends)
    )
    measurement = Measurement(
        **{
            "group": 1,
            "stamps": stamps,
            "device_ns": None,
            "blocks": made,
            "cut": cut,
            "steady": True,
            "clock": {"cost_ns": 50.0, "resolution_ns": 40, "source": "tsc", "drift": 0.0},
            "starts": {"import": 1.0, "build": 0.25, "first_step": 0.5},
            "memory": {"peak_bytes": 1000},
            "steal_share": 0.0,
            **measured,
        }
    )
    base = Attempt(
        id="0",
        session="s",
        plan="p",
        process=0,
        case=Case(**{"workload": "mnist-mlp", "threads": 1, **case}),
        protocol=preset("standard"),
        started="2026-01-01T00:00:00+00:00",
        ended="2026-01-01T00:00:05+00:00",
        machine={
            "health": {
                "governor": "performance",
                "turbo": False,
                "virtualised": None,
                "smt_shared": False,
            }
        },
        software={"torch": "2"},
        network={
            "fingerprint": "f",
            "unit": "images",
            "units_per_step": 32,
            "flops_per_step": 1000,
            "optimizer": "sgd",
        },
        environment={},
        measurement=measurement,
    )
    return replace(base, **changes)


def _taken(kind: type, changes: dict[str, Any]) -> dict[str, Any]:
    """Those changes that are the kind's fields; the rest stays."""
    return {name: changes.pop(name) for name in list(changes) if name in kind.__dataclass_fields__}


def make_block(samples: int, host_ns: int, changes: dict[str, Any]) -> Block:
    calm = {
        "faults": 0,
        "major_faults": 0,
        "switches": 2,
        "involuntary_switches": 0,
        "queue_ns": 0,
        "pressure": 0.0,
    }
    times = {"samples": samples, "host_ns": host_ns, "dispatch_ns": host_ns, "cpu_ns": host_ns}
    return Block(**{**times, **calm, "swap_ins": 0, **changes})


def make_times(
    seed: int, *, centre_ns: float = 1e6, steps: int = 200, noise: float = 0.02
) -> np.ndarray:
    """Independent steps around a process's own level, which lies 1 % around the common one."""
    rng = np.random.default_rng(seed)
    level = centre_ns * (1 + 0.01 * rng.standard_normal())
    return np.rint(level * np.exp(noise * rng.standard_normal(steps))).astype(np.int64)


def make_record(seed: int = 0, *, processes: int = 8, **changes: Any) -> Record:
    return Record(
        attempts=tuple(
            make_attempt(make_times(1000 * seed + p), process=p, id=f"{seed}-{p}", **changes)
            for p in range(processes)
        )
    )


def write_journal(store: FolderStore, attempt: Attempt) -> str:
    """The attempt as its worker would have written it, under a new id."""
    names = ("session", "plan", "process", "case", "protocol", "environment", "task")
    job = Job(id=uuid7(), **{name: getattr(attempt, name) for name in names})
    with Journal(store.journal(job.id)) as journal:
        journal.begin(job)
        journal.write_context(
            machine=attempt.machine, software=attempt.software, network=attempt.network
        )
        if attempt.failure is not None:
            journal.write_failure(attempt.failure)
        elif attempt.measurement is not None and attempt.task == "measure":
            journal.write_measurement(attempt.measurement, attempt.findings)
        else:
            journal.write_findings(attempt.findings)
    return job.id
