"""Proves that a framework's lowering of a network is the network: compares what it computes with the reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from steptime import plugins, workloads
from steptime.core.errors import SteptimeError, Unsupported
from steptime.graph import Work
from steptime.tasks import TaskContext
from steptime.tasks.certify.evidence import RULE, Lowering, dropout_losses, gather, widened
from steptime.tasks.certify.judge import judge, judge_dropout
from steptime.tasks.certify.reference import Effort, Shelved, rate_of, write_deviations, write_exact

INT8 = "int8 is another network; its price is its accuracy part."


def perform(context: TaskContext) -> None:
    """Options: `references`, a folder; `reference`, the framework that is right; `precision` of the bounds; the numbers
    of an Effort; `write`: to compute the reference instead of comparing with it."""
    job, options = context.job, context.job.options
    if options["precision"] == "int8":
        raise Unsupported(INT8)
    work = workloads.load(job.case.workload).build(job.case)
    if not work.graph.stored_parameters:
        raise Unsupported(f"{job.case.workload} has no weights, so there is no training to prove.")
    shelved = Shelved(Path(options["references"]), work, options["reference"], Effort.of(options))
    lower = Lowering(context.framework, job.case)
    if options.get("write"):
        write(lower, work, shelved, options["precision"])
        context.journal.write_findings({"reference": shelved.name})
    else:
        items = examine(lower, work, shelved, options)
        facts = certified(context, items)
        context.journal.write_findings(
            {"certificate": {**facts, "reference": shelved.name, **asdict(shelved.effort)}}
        )


def write(lower: Lowering, work: Work, shelved: Shelved, precision: str) -> None:
    """What is there already is not computed again: precisions share the exact arrays."""
    if not _can(shelved.read_exact):
        write_exact(shelved, lower, work)
    if not _can(partial(shelved.read_deviations, precision)):
        write_deviations(shelved, lower, work, precision)


def _can(read: Callable[[], Any]) -> bool:
    """A file that is absent or damaged is computed anew."""
    try:
        read()
    except (SteptimeError, OSError, ValueError, BadZipFile):
        return False
    return True


def examine(
    lower: Lowering, work: Work, shelved: Shelved, options: dict[str, Any]
) -> list[dict[str, Any]]:
    covers = "inference" if lower.case.phase == "inference" else "training"
    size, precision = (
        plugins.load("frameworks", options["reference"]).rounding_size,
        lower.case.precision,
    )
    exact = shelved.read_exact()
    found = gather(lower, work, covers=covers, rate=rate_of(exact), steps=shelved.effort.steps)
    units = {item: size(widened(precision) if item == RULE else precision) for item in found}
    items = judge(found, exact, shelved.read_deviations(options["precision"]), units)
    if covers == "training" and (losses := dropout_losses(lower, work)):
        items.append(judge_dropout(losses, exact["dropout"], size(precision)))
    return items


def certified(context: TaskContext, items: list[dict[str, Any]]) -> dict[str, Any]:
    case = context.job.case
    return {
        "passed": all(item["passed"] for item in items),
        "covers": "inference" if case.phase == "inference" else "training",
        "version": context.framework.versions()[case.framework],
        "batch_size": case.batch_size,
        "items": items,
    }
