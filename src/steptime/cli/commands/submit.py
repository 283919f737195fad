"""`steptime submit`: hands a plan to Slurm, or the part of it that is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from steptime.cli import output
from steptime.cli.options import Json, PlanName, Preset, Settings
from steptime.cli.request import parse_settings, read_plan, store_folder
from steptime.core.secrets import redact_words

if TYPE_CHECKING:
    from steptime.run.slurm.campaign import Submission


def submit_command(
    plan: PlanName,
    machine: Annotated[
        str,
        typer.Option(
            metavar="FILE", help="The machine file, with [slurm.NAME].", show_default=False
        ),
    ] = "",
    preset: Preset = "",
    set_: Settings = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show cases, time, arrays and scripts; submit none.")
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="Begin a new campaign.")] = False,
    json: Json = False,
) -> None:
    """Submit a plan to Slurm as job arrays.

    The same command again submits what is missing: processes that failed or were lost, and cases
    that need more processes. Cases that are measured or still queued are left alone."""
    from steptime.cli.render import campaign as render
    from steptime.cli.render import dry_run as preview
    from steptime.run import local
    from steptime.run.slurm import campaign
    from steptime.store.folder import FolderStore

    expanded = read_plan(plan, parse_settings(set_ or []), preset)
    store = FolderStore(store_folder())
    machine_file = local.machine_file(machine)
    if not dry_run:
        submission = campaign.submit(expanded, store, machine_file, again=again)
        if json:
            output.print_json(_document(submission))
            return
        render.show_submission(submission, dry_run=False)
        # A dry run shows the notes with its list of cases.
        for line in expanded.notes:
            output.note(f"note: {line}")
        return
    submission = campaign.preview(expanded, store, machine_file)
    if json:
        estimates, _ = preview.estimate_cases(expanded)
        cases = preview.to_document(expanded, estimates)
        output.print_json(_document(submission) | {"plan": cases})
        return
    preview.list_cases(expanded, json=False)
    output.echo()
    render.show_submission(submission, dry_run=True)


def _document(submission: Submission) -> dict[str, Any]:
    arrays = []
    for index, array in enumerate(submission.arrays):
        entry: dict[str, Any] = {
            "section": array.section.name,
            "request": redact_words(array.request),
            "tasks": len(array.tasks),
            "script": submission.scripts[index],
        }
        # A preview has no numbers.
        if index < len(submission.numbers):
            entry["slurm_array"] = submission.numbers[index]
        arrays.append(entry)
    return {
        "campaign": submission.session,
        "submitted": submission.job_count,
        "done": submission.done,
        "queued_or_running": submission.live,
        "settled_cases": submission.settled,
        "arrays": arrays,
    }
