"""Times a case: warm-up, blocks, stamps. Behind them a low precision is set against fp32, which is its price."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from steptime import workloads
from steptime.core.accuracy import is_low
from steptime.core.case import Case
from steptime.core.errors import Unsupported
from steptime.core.measurement import Measurement
from steptime.data import staging
from steptime.data.feeding import FedProgram, ahead
from steptime.data.ingest import unpacked
from steptime.engine import accuracy
from steptime.engine.meter import Meter
from steptime.engine.task_metric import task_metric
from steptime.graph import Work
from steptime.graph.batches import Batch, batches_of_size
from steptime.ranks import collectives, pause_cost
from steptime.ranks.merge import gathered
from steptime.tasks import TaskContext

TURN_STEPS = 3
COMPARED_SEED = 1000  # far from the seeds of the step's batch and of calibration


def perform(context: TaskContext) -> None:
    """Where the case names a tier, its data set lies there meanwhile."""
    case, tier = context.job.case, context.job.options.get("tier", "")
    if not tier:
        measure(context, {}, {})
        return
    with staging.staged(
        workloads.load(case.workload).data_set(case).SET, tier, context.job.id
    ) as told:
        measure(context, {"staging": told["seconds"]}, {"staging": {"tier": case.staging, **told}})


def measure(
    context: TaskContext, staged_seconds: dict[str, float], findings: dict[str, Any]
) -> None:
    case, rendezvous = context.job.case, context.rendezvous
    begin = time.perf_counter()
    work = workloads.load(case.workload).build(
        case, rank=rendezvous.ranks.rank if rendezvous else 0
    )
    program = context.framework.lower(
        work, replace(case, data="host") if case.data == "real" else case
    )
    starts = {
        "import": context.import_seconds,
        **staged_seconds,
        "build": time.perf_counter() - begin,
    }
    if rendezvous is not None and (reason := collectives.lacking(program, case)):
        raise Unsupported(reason)
    with fed(context, program) as (timed_program, told):
        measurement = with_kernels(timed(context, timed_program, starts), program)
        findings = {**findings, **told()}
    if rendezvous is not None:
        told_together = collectives.exchanges(program, rendezvous) | pause_cost.waits(
            program, rendezvous, case
        )
        findings = {**findings, **told_together}
        if rendezvous.ranks.rank:
            return
    if is_low(case.precision):
        compared = Compared.chosen(case, work)
        low = compared.outputs(program, None if case.phase == "inference" else work)
        del program  # two of them may be more than a device holds
        findings = {**findings, "accuracy": compared.price(context, work, low)}
    context.journal.write_measurement(measurement, findings)


@contextlib.contextmanager
def fed(context: TaskContext, program: Any) -> Iterator[tuple[Any, Callable[[], dict[str, Any]]]]:
    """The program to be timed, and what can be told of its data behind the timed part. Real data come from the host's
    files, so they take the way of host memory and are another batch in each step."""
    case, rendezvous = context.job.case, context.rendezvous
    if case.data != "real":
        yield program, dict
        return
    samples = workloads.load(case.workload).samples(case, "train")
    turn = (rendezvous.ranks.rank, rendezvous.ranks.size) if rendezvous else (0, 1)
    with unpacked(samples, case, turn) as ingest, ahead(ingest.batches(), case.prefetch) as batches:
        yield FedProgram(program, batches), lambda: {"data": ingest.told()}


@dataclass(frozen=True)
class Compared:
    """The samples on which a low precision is set against fp32."""

    data: str  # test set, or synthetic
    batches: list[tuple[Batch, int]]  # each with how many of its samples count

    @classmethod
    def chosen(cls, case: Case, work: Work) -> Compared:
        """The test set where the weights are trained and the set is here; else what a seed draws."""
        from steptime.data.synthetic import synthetic_batch

        size, graph = case.batch_size, work.graph
        known = getattr(workloads.load(case.workload), "test_set", lambda case: None)
        real = known(case) if case.weights else None
        data = "test set" if real is not None else "synthetic"
        count = accuracy.sample_count(
            size, graph.forward_flops, 4 * math.prod(graph[graph.output].shape), data
        )
        drawn = (
            synthetic_batch(graph, size, case.seed + COMPARED_SEED + k)
            for k in range(count // size)
        )
        return cls(data, list(batches_of_size(drawn if real is None else real, size, count)))

    def outputs(self, program: Any, trained: Work | None = None) -> list[Any]:
        """`trained`: the steps have moved this work's weights, so they are put back first."""
        if trained is not None:
            program.load(trained.weights)
        return [program.predict(batch)[:own] for batch, own in self.batches]

    def price(self, context: TaskContext, work: Work, low: list[Any]) -> dict[str, Any]:
        case = replace(context.job.case, precision="fp32", phase="inference")
        exact = self.outputs(context.framework.lower(work, case))
        targets = [batch["target"][:own] for batch, own in self.batches]
        absent = "no test set here" if case.weights else "the weights are initial ones"
        known = self.data == "test set"
        return {
            "reference": f"fp32, {case.framework} {case.mode}",
            "data": self.data,
            **accuracy.compared(exact, low),
            "task": task_metric(targets, exact, low) if known else None,
            "task_absent": "" if known else absent,
        }


def timed(context: TaskContext, program: Any, starts: dict[str, float]) -> Measurement:
    """By this process; of several ranks the first has what all of them saw."""
    meter, rendezvous = Meter(program, context.job.case, context.job.protocol), context.rendezvous
    if rendezvous is None:
        return in_turns(meter, context, starts) if context.answers else straight(meter, starts)
    meter.agree = rendezvous.agree
    before = rendezvous.offsets()
    own = in_turns(meter, context, starts) if context.answers else straight(meter, starts)
    return gathered(own, rendezvous, before, device=context.job.case.device)


def straight(meter: Any, starts: dict[str, float]) -> Measurement:
    meter.prepare()
    meter.measure()
    measurement: Measurement = meter.measurement(starts)
    return measurement


def in_turns(meter: Any, context: TaskContext, starts: dict[str, float]) -> Measurement:
    """Warm-up alone, then one block for each `turn` on standard input: all that is kept is blocks of turns."""
    meter.prepare()
    meter.block(0.0)  # behind it the clock stands still until the first turn
    warm = meter.samples
    say(context, "ready")
    while heard(context) == "turn":
        meter.block(context.job.protocol.pair_block_seconds, least_steps=TURN_STEPS)
        say(context, "done")
    measurement: Measurement = meter.measurement(starts)
    return replace(measurement, cut=warm)


def say(context: TaskContext, word: str) -> None:
    if context.rendezvous is None or context.rendezvous.ranks.rank == 0:
        print(word, file=context.answers, flush=True)


def heard(context: TaskContext) -> str:
    """The parent speaks to the first rank alone."""
    if context.rendezvous is None:
        return sys.stdin.readline().strip()
    word: str = context.rendezvous.agree(
        "" if context.rendezvous.ranks.rank else sys.stdin.readline().strip()
    )
    return word


def with_kernels(measurement: Measurement, program: Any) -> Measurement:
    """The routines that a step really runs: asked behind the timed part, and never worth losing a measurement for."""
    try:
        found: dict[str, int] = getattr(program, "kernels", dict)()
    except Exception as problem:
        return replace(
            measurement,
            facts={**measurement.facts, "kernels_problem": f"{type(problem).__name__}: {problem}"},
        )
    return (
        replace(measurement, facts={**measurement.facts, "kernels": found})
        if found
        else measurement
    )
