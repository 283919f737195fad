"""`steptime submit`: hands a plan to Slurm, or what is missing of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from steptime.cli import output
from steptime.cli.render.format import processes, settings
from steptime.cli.request import read_plan, store_folder

if TYPE_CHECKING:
    from steptime.plan.expand import Plan
    from steptime.run.slurm.campaign import Submission


def submit_command(
    plan: Annotated[
        str, typer.Argument(help="A plan file, or the name of a shipped plan.", show_default=False)
    ],
    machine: Annotated[
        str, typer.Option(help="The machine file, with [slurm.NAME].", show_default=False)
    ] = "",
    preset: Annotated[
        str, typer.Option(help="quick, standard, gold or single.", show_default=False)
    ] = "",
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="key=value, any setting; repeatable.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show cases, time, arrays and scripts; submit none.")
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="Begin a new campaign.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Hand a plan to Slurm as job arrays, and return.

    The same command again submits what is missing: what failed, was lost, or wants more processes. What has its
    result, or is still in the queue, is left alone."""
    from steptime.run.slurm import campaign
    from steptime.store.folder import FolderStore

    planned = read_plan(plan, settings(set_ or []), preset)
    from steptime.run import local

    where = FolderStore(store_folder()), local.machine_file(machine)
    found = (
        campaign.preview(planned, *where)
        if dry_run
        else campaign.submit(planned, *where, again=again)
    )
    if json:
        output.document(_document(found) | (_plan(planned) if dry_run else {}))
        return
    if dry_run:
        from steptime.cli.render.dry_run import list_cases

        list_cases(planned, json=False)
        output.say()
    _show(found, dry_run=dry_run)
    for line in () if dry_run else planned.notes:
        output.note(f"note: {line}")


def _plan(plan: Plan) -> dict[str, Any]:
    from steptime.cli.render import dry_run

    return {"plan": dry_run.document(plan, dry_run.estimated(plan)[0])}


def _document(found: Submission) -> dict[str, Any]:
    arrays = [
        {
            "section": array.section.name,
            "request": array.request,
            "tasks": len(array.tasks),
            "script": script,
        }
        for array, script in zip(found.arrays, found.scripts, strict=True)
    ]
    for entry, number in zip(arrays, found.numbers, strict=False):
        entry["slurm_array"] = number
    counts = {
        "submitted": found.submitted,
        "done": found.done,
        "live": found.live,
        "settled_cases": found.settled,
    }
    return {"campaign": found.session, **counts, "arrays": arrays}


def _show(found: Submission, *, dry_run: bool) -> None:
    verb = "would go" if dry_run else "went"
    count = "1 array" if len(found.arrays) == 1 else f"{len(found.arrays)} arrays"
    output.say(f"{processes(found.submitted)} {verb} to Slurm in {count}.")
    numbers = found.numbers or [""] * len(found.arrays)
    rows = [
        [
            number,
            array.section.name,
            str(len(array.tasks)),
            str(len(array.jobs)),
            " ".join(array.request),
        ]
        for number, array in zip(numbers, found.arrays, strict=True)
    ]
    if rows:
        output.table(
            ["array", "section", "tasks", "processes", "request"],
            rows,
            right=("tasks", "processes"),
        )
    for number, text in ((found.done, "measured already"), (found.live, "in the queue or running")):
        if number:
            output.say(f"{processes(number)} {text}.")
    if found.settled:
        output.say(f"{found.settled} cases failed in a way that another try would only repeat.")
    if dry_run:
        for script in found.scripts[:1]:
            output.say(f"\n{script}")
        return
    output.say(f"\nCampaign {found.session}. Next: steptime status, steptime collect.")
