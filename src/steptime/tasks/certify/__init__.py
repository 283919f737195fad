"""Prove that a framework's lowering computes the network: compare it with the reference."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from steptime import plugins, workloads
from steptime.core.accuracy import is_low
from steptime.core.errors import SteptimeError, Unsupported
from steptime.tasks import TaskContext
from steptime.tasks.certify.evidence import (
    LARGE_GRADIENTS,
    RULE,
    STORED,
    Lowering,
    dropout_losses,
    gather_evidence,
    widen_precision,
)
from steptime.tasks.certify.judge import judge, judge_dropout, judge_precision, make_entry
from steptime.tasks.certify.low_precision import low_precision_comparisons
from steptime.tasks.certify.masks import mask_comparisons, mask_probes, read_drawing
from steptime.tasks.certify.reference import (
    ReferenceFiles,
    reference_rate,
    write_deviations,
    write_exact,
)
from steptime.tasks.certify.studies import Study, make_studies

INT8 = "int8 is another network. Its accuracy loss is measured with its speed."
Items = list[dict[str, Any]]


def perform(context: TaskContext) -> None:
    """Options: `references`, a folder; `reference`, the framework that is right; `precision` of
    the bounds; `semantics`, the certificate in fp64 or why there is none; `write`: compute the
    reference, compare nothing."""
    job = context.job
    case = job.case
    options = job.options
    if options["precision"] == "int8":
        raise Unsupported(INT8)
    work = workloads.load(case.workload).build(case)
    if not work.graph.stored_parameters:
        raise Unsupported(f"{case.workload} has no weights, so there is no training to prove.")
    lower = Lowering(context.framework, case)
    items: Items = []
    for study in make_studies(work, case):
        folder = Path(options["references"])
        files = ReferenceFiles(folder, study, options["reference"], case.seed)
        if options.get("write"):
            write_reference(lower, files, options["precision"])
        else:
            items += examine(lower, files, options)
    if options.get("write"):
        context.journal.write_findings({"reference": True})
    else:
        context.journal.write_findings({"certificate": certificate_facts(context, items)})


def write_reference(lower: Lowering, files: ReferenceFiles, precision: str) -> None:
    """Compute only what is missing: all precisions share the exact arrays."""
    if not _can_read(files.read_exact):
        write_exact(files, lower)
    if not _can_read(partial(files.read_deviations, precision)):
        write_deviations(files, lower, precision)


def _can_read(read: Callable[[], Any]) -> bool:
    """False: the file is absent or damaged."""
    try:
        read()
    except (SteptimeError, OSError, ValueError, BadZipFile):
        return False
    return True


def examine(lower: Lowering, files: ReferenceFiles, options: dict[str, Any]) -> Items:
    study = files.study
    covers = "inference" if lower.case.phase == "inference" else "training"
    precision = lower.case.precision
    exact = files.read_exact()
    deviations = files.read_deviations(options["precision"])
    rate = reference_rate(exact)
    evidence = gather_evidence(lower, study, covers=covers, rate=rate, steps=study.effort.steps)
    units = _rounding_units(list(evidence), precision, files, options["reference"])
    items = judge(evidence, exact, deviations, units)
    if is_low(precision):
        items += judge_precision(evidence, exact, deviations, units["outputs"])
    if study.is_complete:
        items += examine_low_precision(lower, study, covers)
    if covers == "training" and study.is_complete:
        items += examine_dropout(lower, study, exact.get("dropout", {}), units["outputs"])
    return [{**item, "network": study.network} for item in items]


def _rounding_units(
    items: list[str], precision: str, files: ReferenceFiles, reference: str
) -> dict[str, float]:
    """The size of one rounding, by item."""
    rounding_size = plugins.load("frameworks", reference).rounding_size
    units = {}
    for item in items:
        # Weights that are trained are stored in fp32 at least.
        is_wide = item in (RULE, LARGE_GRADIENTS, STORED)
        units[item] = rounding_size(widen_precision(precision) if is_wide else precision)
        if files.is_compact and item != "outputs":
            units[item] = max(units[item], rounding_size("fp32"))
    return units


def examine_dropout(
    lower: Lowering, study: Study, exact_losses: dict[str, Any], unit: float
) -> Items:
    """Masks are read in fp32 or better: what is dropped does not depend on the precision."""
    items: Items = []
    losses = dropout_losses(lower, study.work)
    if losses:
        items.append(judge_dropout(losses, exact_losses, unit))
    comparisons = []
    for probe in mask_probes(study.work.graph).values():
        drawing = read_drawing(lower(probe, "training", wide=True), probe)
        comparisons += mask_comparisons(drawing, probe)
    if comparisons:
        items.append(make_entry("dropout masks", comparisons))
    return items


def examine_low_precision(lower: Lowering, study: Study, covers: str) -> Items:
    comparisons = low_precision_comparisons(lower, study.work, covers=covers)
    return [make_entry("low precision", comparisons)] if comparisons else []


def certificate_facts(context: TaskContext, items: Items) -> dict[str, Any]:
    case = context.job.case
    return {
        "covers": "inference" if case.phase == "inference" else "training",
        "version": context.framework.versions()[case.framework],
        "batch_size": case.batch_size,
        "semantics": context.job.options.get("semantics", {}),
        "items": items,
    }
