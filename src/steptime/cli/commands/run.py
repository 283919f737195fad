"""`steptime run`: measures a case from flags, a plan, or, asked for nothing, the tour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from steptime.cli import output
from steptime.cli.render.format import settings
from steptime.cli.request import NOTHING_LEFT, TOUR, read_plan, store_folder, warn_of_problems
from steptime.core.errors import SteptimeError

if TYPE_CHECKING:
    from steptime.plan.expand import Plan

ALL_FAILED, SOME_FAILED = 3, 4
NEXT = """
Next:
  steptime run --workload cifar10-cnn --phase training --batch-size 64    one case, with an interval
  steptime compare workload=cifar10-cnn,batch_size=64 layout=nhwc         which of two is faster, and how sure that is
  steptime machine                                                        what this machine can do at best"""


def run_command(
    plan: Annotated[
        str, typer.Argument(help="A plan file, or the name of a shipped plan.", show_default=False)
    ] = "",
    workload: Annotated[
        str, typer.Option(help="A network's name, or FILE.py:NAME.", show_default=False)
    ] = "",
    phase: Annotated[
        str, typer.Option(help="training, inference or forward.", show_default=False)
    ] = "",
    batch_size: Annotated[
        str, typer.Option(help="One size, or several: 1,32.", show_default=False)
    ] = "",
    preset: Annotated[
        str, typer.Option(help="quick, standard, gold or single.", show_default=False)
    ] = "",
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="key=value, any setting; repeatable.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the cases and the time; run nothing.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Measure anew what is already there.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Measure a case, a plan, or the tour.

    With nothing: the tour, about a minute. What was measured before is not measured twice, so an interrupted run
    continues when it is asked for again."""
    flags = {"workload": workload, "phase": phase, "batch_size": batch_size}
    chosen = settings(
        [*(f"{name}={value}" for name, value in flags.items() if value), *(set_ or [])]
    )
    touring = not plan and not chosen
    if not (plan or touring or "workload" in chosen):
        raise SteptimeError("A case needs a network: --workload resnet50, for example.")
    planned = read_plan(plan or (TOUR if touring else ""), chosen, preset)
    if dry_run:
        from steptime.cli.render.dry_run import list_cases

        list_cases(planned, json=json, quiet=touring)
    elif not planned.cases:
        _say_nothing_is_left(planned, json=json)
    else:
        _measure(planned, again=again, json=json, touring=touring)


def _say_nothing_is_left(plan: Plan, *, json: bool) -> None:
    excluded = [{"case": gone.case.to_dict(), "reason": gone.reason} for gone in plan.excluded]
    if json:
        output.document({"session": None, "records": [], "excluded": excluded})
        return
    output.say(f"{plan.title or plan.name}: {NOTHING_LEFT}")
    for gone in plan.excluded:
        output.say(f"excluded: {gone.case.label}: {gone.reason}")


def _measure(plan: Plan, *, again: bool, json: bool, touring: bool) -> None:
    from steptime.analysis.certificates import TASK, certificates
    from steptime.cli.render import results
    from steptime.cli.render.watch import SessionWatch
    from steptime.run import session
    from steptime.store.folder import FolderStore

    for line in () if touring else plan.notes:
        output.note(f"note: {line}")
    store = FolderStore(store_folder())
    with SessionWatch() as watch:
        records = session.run(plan.cases, plan.protocol, store, again=again, watch=watch)
    warn_of_problems(store)
    known = certificates(store.attempts(TASK))
    if json:
        output.document(results.as_document(records, known))
    else:
        results.show(records, known)
        results.say_stored(records, store.path, fresh=bool(watch.finished_processes))
        if touring:
            output.say(NEXT)
    failed = sum(record.status != "ok" for record in records)
    if failed:
        raise typer.Exit(ALL_FAILED if failed == len(records) else SOME_FAILED)
