"""`steptime collect`: takes in the results of a campaign and shows them like a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steptime.cli import output
from steptime.cli.commands.status import poll
from steptime.cli.exit_codes import exit_if_failed
from steptime.cli.options import CampaignId, Json
from steptime.cli.render.format import processes
from steptime.cli.request import store_folder, warn_of_problems

if TYPE_CHECKING:
    from steptime.core.record import Record
    from steptime.run.slurm.progress import Progress
    from steptime.store.folder import FolderStore

# Often enough for a person who waits; squeue is asked each time.
POLL_SECONDS = 2.0


def collect_command(
    campaign: CampaignId = "",
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until no job is queued or running.")
    ] = False,
    archive: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Also write PSC's files, table and charts here.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Collect and show the results of a campaign.

    Records which processes failed and why. Results are in the store as soon as a process ends;
    nothing is lost if this command never runs."""
    from steptime.run.slurm import campaign as campaigns
    from steptime.store.folder import FolderStore

    store = FolderStore(store_folder())
    folder = campaigns.find(store, campaign)
    slurm = campaigns.Slurm()
    campaigns.collect(folder, slurm)
    seconds = POLL_SECONDS if wait else 0.0
    for progress in poll(lambda: campaigns.update_progress(folder, slurm), seconds):
        latest = progress
    # Once more: the jobs that ended while this command waited.
    campaigns.collect(folder, slurm)
    records = campaigns.records(folder)
    warn_of_problems(store)
    if json:
        _print_json(records, latest, store, archive)
    else:
        _show(records, latest, store, archive)
    exit_if_failed(sum(record.status != "ok" for record in records), len(records))


def _print_json(
    records: list[Record], progress: Progress, store: FolderStore, archive: Path | None
) -> None:
    from steptime.analysis.certificates import TASK, read_certificates
    from steptime.cli.psc_archive import write_archive
    from steptime.cli.render import results

    certificates = read_certificates(store.attempts(TASK))
    paths = write_archive(records, archive) if archive else []
    document = results.to_document(records, certificates)
    document["progress"] = progress.to_dict()
    document["archive"] = [str(path) for path in paths]
    output.print_json(document)


def _show(
    records: list[Record], progress: Progress, store: FolderStore, archive: Path | None
) -> None:
    from steptime.analysis.certificates import TASK, read_certificates
    from steptime.cli.psc_archive import write_archive
    from steptime.cli.render import results

    results.show(records, read_certificates(store.attempts(TASK)))
    if not progress.is_over:
        pending = progress.count("waiting") + progress.count("running")
        output.echo(f"\nNot over yet: {processes(pending)} to come.")
    # After the results: a folder that cannot be written must not hide them.
    if archive:
        results.show_archive(write_archive(records, archive), archive)
