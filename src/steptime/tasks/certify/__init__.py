"""Prove that a framework's lowering computes the network: compare it with the reference."""

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
from steptime.tasks.certify.evidence import (
    RULE,
    Lowering,
    dropout_losses,
    gather_evidence,
    widen_precision,
)
from steptime.tasks.certify.judge import judge, judge_dropout
from steptime.tasks.certify.reference import (
    Effort,
    ReferenceFiles,
    reference_rate,
    write_deviations,
    write_exact,
)

INT8 = "int8 is another network. Its accuracy loss is measured with its speed."


def perform(context: TaskContext) -> None:
    """Options: `references`, a folder; `reference`, the framework that is right; `precision` of
    the bounds; the fields of an Effort; `write`: compute the reference, compare nothing."""
    job = context.job
    options = job.options
    if options["precision"] == "int8":
        raise Unsupported(INT8)
    work = workloads.load(job.case.workload).build(job.case)
    if not work.graph.stored_parameters:
        raise Unsupported(f"{job.case.workload} has no weights, so there is no training to prove.")
    effort = Effort.from_options(options)
    files = ReferenceFiles(Path(options["references"]), work, options["reference"], effort)
    lower = Lowering(context.framework, job.case)
    if options.get("write"):
        write_reference(lower, work, files, options["precision"])
        context.journal.write_findings({"reference": files.name})
    else:
        items = examine(lower, work, files, options)
        certificate = certificate_facts(context, items)
        certificate |= {"reference": files.name, **asdict(effort)}
        context.journal.write_findings({"certificate": certificate})


def write_reference(lower: Lowering, work: Work, files: ReferenceFiles, precision: str) -> None:
    """Compute only what is missing: all precisions share the exact arrays."""
    if not _can_read(files.read_exact):
        write_exact(files, lower, work)
    if not _can_read(partial(files.read_deviations, precision)):
        write_deviations(files, lower, work, precision)


def _can_read(read: Callable[[], Any]) -> bool:
    """False: the file is absent or damaged."""
    try:
        read()
    except (SteptimeError, OSError, ValueError, BadZipFile):
        return False
    return True


def examine(
    lower: Lowering, work: Work, files: ReferenceFiles, options: dict[str, Any]
) -> list[dict[str, Any]]:
    covers = "inference" if lower.case.phase == "inference" else "training"
    precision = lower.case.precision
    rounding_size = plugins.load("frameworks", options["reference"]).rounding_size
    exact = files.read_exact()
    rate = reference_rate(exact)
    evidence = gather_evidence(lower, work, covers=covers, rate=rate, steps=files.effort.steps)
    units = dict.fromkeys(evidence, rounding_size(precision))
    if RULE in units:
        units[RULE] = rounding_size(widen_precision(precision))
    items = judge(evidence, exact, files.read_deviations(options["precision"]), units)
    if covers == "training":
        losses = dropout_losses(lower, work)
        if losses:
            items.append(judge_dropout(losses, exact["dropout"], rounding_size(precision)))
    return items


def certificate_facts(context: TaskContext, items: list[dict[str, Any]]) -> dict[str, Any]:
    case = context.job.case
    return {
        "passed": all(item["passed"] for item in items),
        "covers": "inference" if case.phase == "inference" else "training",
        "version": context.framework.versions()[case.framework],
        "batch_size": case.batch_size,
        "items": items,
    }
