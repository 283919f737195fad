"""Time a case: warm-up, blocks, stamps. Afterwards ask how accurate its precision is."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

from steptime import workloads
from steptime.core.accuracy import DETERMINISTIC, is_low
from steptime.core.case import Case
from steptime.core.errors import Unsupported
from steptime.core.measurement import Measurement
from steptime.core.program import Program
from steptime.core.ranks import Ranks
from steptime.data.feeding import FedProgram, prefetch
from steptime.data.ingest import Ingest, unpack
from steptime.data.staging import stage
from steptime.data.synthetic import synthetic_batch
from steptime.engine import accuracy
from steptime.engine.meter import Meter
from steptime.engine.task_metric import task_metric, task_value
from steptime.graph import Work
from steptime.graph.batches import Batch, batches_of_size
from steptime.ranks.collectives import explain_missing_exchange, measure_exchange
from steptime.ranks.merge import merge_ranks
from steptime.ranks.pause_cost import measure_pause_cost
from steptime.ranks.rendezvous import Offset
from steptime.tasks import TaskContext

TURN_STEPS = 3
# Of the time limit of a process; the rest is for what follows the steps.
STEPS_SHARE = 0.75
# Far from the seeds of the step's batch and of calibration.
COMPARISON_SEED = 1000


def perform(context: TaskContext) -> None:
    """If the case names a tier, its dataset is staged there while it is measured."""
    case = context.job.case
    tier = context.job.options.get("tier", "")
    if not tier:
        measure(context, {}, {})
        return
    dataset = workloads.load(case.workload).data_set(case).SET
    with stage(dataset, tier, context.job.id) as facts:
        findings = {"staging": {"tier": case.staging, **facts}}
        measure(context, {"staging": facts["seconds"]}, findings)


def measure(
    context: TaskContext, staging_seconds: dict[str, float], findings: dict[str, Any]
) -> None:
    case = context.job.case
    stopwatch = context.stopwatch
    if staging_seconds:
        stopwatch.lap("staging")
    work = build_work(context)
    stopwatch.lap("data and weights")
    program = lower(context, work)
    stopwatch.lap("lowering")
    build_seconds = stopwatch.seconds["data and weights"] + stopwatch.seconds["lowering"]
    starts = {
        "import": stopwatch.seconds.get("import", 0.0),
        **staging_seconds,
        "build": build_seconds,
    }
    if context.rendezvous is not None:
        reason = explain_missing_exchange(program, case)
        if reason:
            raise Unsupported(reason)
    measurement, data_facts = time_program(context, program, starts)
    findings = findings | data_facts
    if context.rendezvous is not None:
        findings |= measure_exchange(program, context.rendezvous)
        findings |= measure_pause_cost(program, context.rendezvous, case)
        if context.rank > 0:
            return
        stopwatch.lap("exchange")
    options = context.job.options
    case_findings = {name: options[name] for name in DETERMINISTIC if name in options}
    if case_findings:
        findings |= case_findings
    elif is_low(case.precision):
        comparison = PrecisionComparison.choose(case, work)
        if case.phase != "inference":
            # The timed steps have changed the weights.
            program.load(work.weights)
        low_outputs = comparison.predict(program)
        # A device may not have room for two programs.
        del program
        findings["accuracy"] = comparison.accuracy_loss(context, work, low_outputs)
    elif case.phase == "inference":
        findings |= measure_task(case, work, program)
    stopwatch.lap("accuracy")
    findings["seconds"] = dict(stopwatch.seconds)
    context.journal.write_measurement(measurement, findings)


def build_work(context: TaskContext) -> Work:
    case = context.job.case
    work: Work = workloads.load(case.workload).build(case, rank=context.rank)
    return work


def lower(context: TaskContext, work: Work) -> Program:
    case = context.job.case
    # Real data come from the host's files, so they take the path of data in host memory.
    lowered_case = replace(case, data="host") if case.data == "real" else case
    return context.framework.lower(work, lowered_case)


def time_program(
    context: TaskContext, program: Program, starts: dict[str, float]
) -> tuple[Measurement, dict[str, Any]]:
    """The measurement, and facts about the data that was read meanwhile."""
    with open_feed(context, program) as feed:
        measurement = time_steps(context, feed.program, starts)
        context.stopwatch.lap("steps")
        measurement = add_kernels(measurement, program)
        context.stopwatch.lap("kernels")
        return measurement, feed.facts()


@dataclass(frozen=True)
class Feed:
    """The program to time; with real data, each step takes another batch."""

    program: Program
    ingest: Ingest | None = None

    def facts(self) -> dict[str, Any]:
        """Ask after the timed part: counting resident pages takes time."""
        return {} if self.ingest is None else {"data": self.ingest.facts()}


@contextlib.contextmanager
def open_feed(context: TaskContext, program: Program) -> Iterator[Feed]:
    case = context.job.case
    if case.data != "real":
        yield Feed(program)
        return
    samples = workloads.load(case.workload).samples(case, "train")
    ranks = Ranks() if context.rendezvous is None else context.rendezvous.ranks
    with (
        unpack(samples, case, ranks) as ingest,
        prefetch(ingest.batches(), case.prefetch) as batches,
    ):
        yield Feed(cast(Program, FedProgram(program, batches)), ingest)


@dataclass(frozen=True)
class PrecisionComparison:
    """The samples on which a low precision is compared with fp32, whatever the batch size."""

    data: str  # "test set" or "synthetic"
    # Each with the number of its samples that count.
    batches: list[tuple[Batch, int]]

    @classmethod
    def choose(cls, case: Case, work: Work) -> PrecisionComparison:
        """The test set if the weights are trained and the set is here; else seeded batches."""
        graph = work.graph
        find_test_set = getattr(workloads.load(case.workload), "test_set", None)
        test_batches = None
        if case.weights and find_test_set is not None:
            test_batches = find_test_set(case)
        data = "synthetic" if test_batches is None else "test set"
        output_bytes = 4 * math.prod(graph[graph.output].shape)
        count = accuracy.sample_count(graph.forward_flops, output_bytes, data)
        if test_batches is None:
            # Drawn at once: the same samples for every batch size.
            test_batches = iter([synthetic_batch(graph, count, case.seed + COMPARISON_SEED)])
        return cls(data, list(batches_of_size(test_batches, case.batch_size, count)))

    @property
    def targets(self) -> list[Any]:
        return [batch["target"][:count] for batch, count in self.batches]

    def predict(self, program: Program) -> list[Any]:
        return [program.predict(batch)[:count] for batch, count in self.batches]

    def accuracy_loss(
        self, context: TaskContext, work: Work, low_outputs: list[Any]
    ) -> dict[str, Any]:
        """What the low precision changes in the outputs, and in the task's metric if known."""
        # The framework's simplest mode: to compile or tune a program that runs once takes minutes.
        mode = context.framework.MODES[0]
        case = replace(context.job.case, precision="fp32", phase="inference", mode=mode)
        exact_outputs = self.predict(context.framework.lower(work, case))
        loss = {"reference": f"fp32, {case.framework} {case.mode}", "data": self.data}
        loss |= accuracy.compare_outputs(exact_outputs, low_outputs)
        if self.data == "test set":
            task = task_metric(self.targets, exact_outputs, low_outputs)
            return loss | {"task": task, "task_absent": ""}
        reason = "no test set here" if case.weights else "the weights are initial ones"
        return loss | {"task": None, "task_absent": reason}


def measure_task(case: Case, work: Work, program: Program) -> dict[str, Any]:
    """The task's metric in full precision; nothing without trained weights or the test set."""
    if not case.weights:
        return {}
    comparison = PrecisionComparison.choose(case, work)
    if comparison.data != "test set":
        return {}
    return {"task": task_value(comparison.targets, comparison.predict(program))}


def time_steps(context: TaskContext, program: Program, starts: dict[str, float]) -> Measurement:
    """By this process alone, or merged on rank 0 from all ranks."""
    case = context.job.case
    meter = Meter(program, case, context.job.protocol, deadline_ns=deadline_ns(context))
    rendezvous = context.rendezvous
    offsets: list[Offset] = []
    if rendezvous is not None:
        meter.broadcast = rendezvous.broadcast
        offsets = rendezvous.measure_offsets()
    meter.run_first_step()
    context.stopwatch.lap("first step")
    meter.prepare()
    context.stopwatch.lap("warm-up")
    if context.answers is not None:
        measurement = measure_turns(meter, context, starts)
    else:
        meter.measure()
        measurement = meter.measurement(starts)
    if rendezvous is None:
        return measurement
    return merge_ranks(measurement, rendezvous, offsets, device=case.device)


def deadline_ns(context: TaskContext) -> float:
    """When steps must end, so that the parent gets what was measured instead of ending the worker.

    A worker that takes turns has the time limit for each of them."""
    if context.answers is not None:
        return math.inf
    return 1e9 * (context.stopwatch.began + STEPS_SHARE * context.job.protocol.limit_seconds)


def measure_turns(meter: Meter, context: TaskContext, starts: dict[str, float]) -> Measurement:
    """One block for each `turn` on standard input. Only these blocks count, not the warm-up."""
    # After it the clock stops until the first turn.
    meter.block(0.0)
    warmup_samples = meter.samples
    send(context, "ready")
    while receive(context) == "turn":
        meter.block(context.job.protocol.pair_block_seconds, least_steps=TURN_STEPS)
        send(context, "done")
    return replace(meter.measurement(starts), cut=warmup_samples)


def send(context: TaskContext, message: str) -> None:
    if context.rank == 0:
        print(message, file=context.answers, flush=True)


def receive(context: TaskContext) -> str:
    """The parent's message. It reaches rank 0 only, which passes it on."""
    message = sys.stdin.readline().strip() if context.rank == 0 else ""
    if context.rendezvous is not None:
        message = context.rendezvous.broadcast(message)
    return message


def add_kernels(measurement: Measurement, program: Program) -> Measurement:
    """Add the kernels that a step really runs. Failing to list them costs no measurement."""
    list_kernels = getattr(program, "kernels", dict)
    try:
        kernels: dict[str, int] = list_kernels()
    except Exception as problem:
        explanation = f"{type(problem).__name__}: {problem}"
        return replace(measurement, facts={**measurement.facts, "kernels_problem": explanation})
    if not kernels:
        return measurement
    return replace(measurement, facts={**measurement.facts, "kernels": kernels})
