"""`steptime run`: measures one case from flags, a plan, or, without arguments, the tour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from steptime.cli import output
from steptime.cli.exit_codes import ERROR, exit_if_failed
from steptime.cli.options import (
    Again,
    Device,
    Framework,
    Json,
    Mode,
    Phase,
    PlanName,
    Precision,
    Preset,
    Settings,
    Workload,
)
from steptime.cli.request import (
    NOTHING_LEFT,
    TOUR,
    collect_settings,
    read_plan,
    store_folder,
    warn_of_problems,
)
from steptime.core.errors import SteptimeError

if TYPE_CHECKING:
    from steptime.plan.expand import Plan

NEXT_STEPS = """
Next:
  steptime compare workload=lenet5,threads=1 layout=nhwc   is B faster? also on a busy machine
  steptime run --workload cifar10-cnn --preset standard    one case until its interval is ±2 %
  steptime machine                                         the peaks of this machine"""


def run_command(
    plan: PlanName = "",
    workload: Workload = "",
    phase: Phase = "",
    batch_size: Annotated[
        str, typer.Option(metavar="N", help="One size, or several: 1,32.", show_default=False)
    ] = "",
    framework: Framework = "",
    mode: Mode = "",
    precision: Precision = "",
    device: Device = "",
    preset: Preset = "",
    set_: Settings = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the cases and the time; run nothing.")
    ] = False,
    again: Again = False,
    json: Json = False,
) -> None:
    """Measure one case, a plan, or a one-minute tour.

    Flags describe one case; without arguments it is the tour. Results that exist are not measured
    again, so the same command continues an interrupted run."""
    flags = {"workload": workload, "phase": phase, "batch_size": batch_size}
    flags |= {"framework": framework, "mode": mode, "precision": precision, "device": device}
    settings = collect_settings(set_, flags)
    # A preset alone, `steptime run --preset gold`, is still the tour.
    is_tour = not plan and not settings
    if not (plan or is_tour or "workload" in settings):
        raise SteptimeError("A case needs a network: --workload resnet50, for example.")
    expanded = read_plan(TOUR if is_tour else plan, settings, preset)
    if dry_run:
        from steptime.cli.render.dry_run import list_cases

        list_cases(expanded, json=json, quiet=is_tour)
        # Success would mean that there is something to run.
        if not expanded.cases:
            raise typer.Exit(ERROR)
    elif not expanded.cases:
        _show_excluded(expanded, json=json)
    else:
        _measure(expanded, again=again, json=json, is_tour=is_tour)


def _show_excluded(plan: Plan, *, json: bool) -> None:
    if json:
        excluded = [{"case": gone.case.to_dict(), "reason": gone.reason} for gone in plan.excluded]
        output.print_json({"session": None, "records": [], "excluded": excluded})
    else:
        output.echo(f"{plan.title or plan.name}: {NOTHING_LEFT}")
        for gone in plan.excluded:
            output.echo(f"excluded: {gone.case.label}: {gone.reason}")
    # Success would mean that something was measured.
    raise typer.Exit(ERROR)


def _measure(plan: Plan, *, again: bool, json: bool, is_tour: bool) -> None:
    from steptime.analysis.certificates import TASK, read_certificates
    from steptime.cli.render import results, time_spent
    from steptime.cli.render.watch import SessionWatch
    from steptime.run import session
    from steptime.store.folder import FolderStore

    # Notes are about plans that a user wrote.
    if not is_tour:
        for line in plan.notes:
            output.note(f"note: {line}")
    store = FolderStore(store_folder())
    with SessionWatch() as watch:
        records = session.run(plan.cases, plan.protocol, store, again=again, watch=watch)
        total_seconds = watch.total_seconds
    warn_of_problems(store)
    certificates = read_certificates(store.attempts(TASK))
    if json:
        document = results.to_document(records, certificates)
        document["seconds"] = time_spent.to_document(total_seconds, watch.stage_seconds)
        output.print_json(document)
    else:
        results.show(records, certificates)
        results.show_stored(records, store.path, fresh=bool(watch.finished_processes))
        if watch.finished_processes:
            output.echo(time_spent.describe(total_seconds, watch.stage_seconds))
        if is_tour:
            output.echo(NEXT_STEPS)
    exit_if_failed(sum(record.status != "ok" for record in records), len(records))
