"""Fake attempts and records for tests that do not measure. By default the machine is calm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.core.job import Job
from steptime.core.measurement import Block, Measurement, RankSamples
from steptime.core.protocol import preset
from steptime.core.record import Attempt, Failure, Record
from steptime.store.folder import FolderStore
from steptime.store.journal import Journal, uuid7

CALM_HEALTH = {
    "governor": "performance",
    "turbo": False,
    "virtualised": None,
    "smt_shared": False,
}
NETWORK = {
    "fingerprint": "f",
    "unit": "images",
    "units_per_step": 32,
    "flops_per_step": 1000,
    "optimizer": "sgd",
}
CLOCK = {"cost_ns": 50.0, "resolution_ns": 40, "source": "tsc", "drift": 0.0}
# What a low precision lost, as a worker reports it.
ACCURACY: dict[str, Any] = {
    "reference": "fp32, pytorch compiled",
    "data": "synthetic",
    "samples": 1250,
    "positions": 1250,
    "broken_positions": 0,
    "largest_logit_error": 0.1,
    "mean_logit_error": 0.01,
    "reference_rms": 1.5,
    "largest_relative_error": 0.068,
    "mean_relative_error": 0.007,
    "kl_divergence": 0.001,
    "top1_agreement": 0.987,
    "top1_agreement_interval": [0.979, 0.992],
    "task": None,
    "task_absent": "the weights are initial ones",
}
STARTS = {"import": 1.0, "build": 0.25, "first_step": 0.5}


def make_attempt(
    times_ns: Sequence[int], *, cut: int = 0, blocks: int = 10, **changes: Any
) -> Attempt:
    """An attempt that measured these steps.

    `changes` are fields of Block (for all blocks), Case, Measurement and Attempt by name."""
    block_changes = _pop_fields(Block, changes)
    case_changes = _pop_fields(Case, changes)
    measurement_changes = _pop_fields(Measurement, changes)
    measurement = make_measurement(times_ns, cut=cut, blocks=blocks, **block_changes)
    attempt = Attempt(
        id="0",
        session="s",
        plan="p",
        process=0,
        case=replace(Case(workload="mnist-mlp", threads=1), **case_changes),
        protocol=preset("standard"),
        started="2026-01-01T00:00:00+00:00",
        ended="2026-01-01T00:00:05+00:00",
        machine={"health": dict(CALM_HEALTH)},
        software={"torch": "2"},
        network=dict(NETWORK),
        environment={},
        measurement=replace(measurement, **measurement_changes),
    )
    return replace(attempt, **changes)


def make_failed_attempt(cause: Cause, reason: str = "x", **changes: Any) -> Attempt:
    attempt = make_attempt([1] * 40, blocks=1, **changes)
    return replace(attempt, measurement=None, failure=Failure(cause=cause, reason=reason))


def _pop_fields(kind: type, changes: dict[str, Any]) -> dict[str, Any]:
    """Remove the fields of this dataclass from the changes and return them."""
    names = [name for name in changes if name in kind.__dataclass_fields__]
    return {name: changes.pop(name) for name in names}


def make_measurement(
    times_ns: Sequence[int], *, cut: int = 0, blocks: int = 10, **block_changes: Any
) -> Measurement:
    """Samples in blocks of equal length."""
    stamps = np.concatenate([[0], np.cumsum(np.asarray(times_ns, dtype=np.int64))]).tolist()
    edges = np.linspace(0, len(times_ns), blocks + 1).astype(int).tolist()
    made_blocks = []
    for first, last in pairwise(edges):
        block = make_block(last - first, stamps[last] - stamps[first])
        made_blocks.append(replace(block, **block_changes))
    return Measurement(
        group=1,
        stamps=stamps,
        device_ns=None,
        blocks=tuple(made_blocks),
        cut=cut,
        steady=True,
        clock=dict(CLOCK),
        starts=dict(STARTS),
        memory={"peak_bytes": 1000},
        steal_share=0.0,
    )


def make_block(samples: int, host_ns: int) -> Block:
    return Block(
        samples=samples,
        host_ns=host_ns,
        dispatch_ns=host_ns,
        cpu_ns=host_ns,
        faults=0,
        major_faults=0,
        switches=2,
        involuntary_switches=0,
        queue_ns=0,
        pressure=0.0,
        swap_ins=0,
    )


def make_rank(
    number: int, times_ns: Sequence[int], *, start_ns: int = 0, blocks: int = 10, **changes: Any
) -> RankSamples:
    """A rank with these samples, without pauses."""
    rank = RankSamples(
        rank=number,
        node=f"node{number}",
        stamps=list(accumulate(times_ns, initial=start_ns)),
        device_ns=None,
        idle_ns=(0,) * blocks,
        cpu_ns=1,
        queue_ns=0,
        cut=0,
        steady=True,
    )
    return replace(rank, **changes)


def make_times(
    seed: int, *, centre_ns: float = 1e6, steps: int = 200, noise: float = 0.02
) -> np.ndarray:
    """Independent steps around the level of a process, which varies by 1 %."""
    rng = np.random.default_rng(seed)
    level = centre_ns * (1 + 0.01 * rng.standard_normal())
    return np.rint(level * np.exp(noise * rng.standard_normal(steps))).astype(np.int64)


def make_record(seed: int = 0, *, processes: int = 8, **changes: Any) -> Record:
    """One of many cases: its processes are far apart in the session."""
    attempts = []
    for process in range(processes):
        times = make_times(1000 * seed + process)
        settings = {"environment": make_position(process), **changes}
        attempts.append(make_attempt(times, process=process, id=f"{seed}-{process}", **settings))
    return Record(attempts=tuple(attempts))


def make_position(process: int, cases: int = 100) -> dict[str, int]:
    """The environment of a process in a session of so many cases."""
    return {"session_process": cases * process}


def write_journal(store: FolderStore, attempt: Attempt) -> str:
    """Write the attempt as its worker would have written it, under a new id."""
    job = Job(
        id=uuid7(),
        session=attempt.session,
        plan=attempt.plan,
        process=attempt.process,
        case=attempt.case,
        protocol=attempt.protocol,
        environment=attempt.environment,
        task=attempt.task,
        pair=attempt.pair,
    )
    with Journal(store.journal(job.id)) as journal:
        journal.begin(job)
        journal.write_context(
            machine=attempt.machine,
            software=attempt.software,
            network=attempt.network,
            program=attempt.program,
        )
        if attempt.failure is not None:
            journal.write_failure(attempt.failure)
        elif attempt.measurement is not None and attempt.task == "measure":
            journal.write_measurement(attempt.measurement, attempt.findings)
        else:
            journal.write_findings(attempt.findings)
    return job.id


def kept_ns(measurement: Measurement) -> tuple[int, ...]:
    """The durations of the samples after warm-up."""
    return measurement.samples_ns[measurement.cut :]


def kept_blocks(measurement: Measurement) -> list[Block]:
    """The blocks that lie wholly after warm-up."""
    blocks = []
    first = 0
    for block in measurement.blocks:
        if first >= measurement.cut:
            blocks.append(block)
        first += block.samples
    return blocks
