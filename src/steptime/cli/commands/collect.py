"""`steptime collect`: takes in the results of a campaign and shows them like a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steptime.cli import output
from steptime.cli.commands.status import poll
from steptime.cli.exit_codes import exit_if_failed
from steptime.cli.options import CampaignId, Json
from steptime.cli.render.format import processes
from steptime.cli.request import store_folder, warn_of_problems

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
    from steptime.analysis.certificates import TASK, read_certificates
    from steptime.cli.psc_archive import write_archive
    from steptime.cli.render import results
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
    certificates = read_certificates(store.attempts(TASK))
    paths = []
    if json:
        if archive:
            paths = write_archive(records, archive)
        document = results.to_document(records, certificates)
        document["progress"] = latest.to_dict()
        document["archive"] = [str(path) for path in paths]
        output.print_json(document)
    else:
        results.show(records, certificates)
        if not latest.is_over:
            pending = latest.count("waiting") + latest.count("running")
            output.echo(f"\nNot over yet: {processes(pending)} to come.")
        if archive:
            paths = write_archive(records, archive)
            results.show_archive(paths, archive)
    exit_if_failed(sum(record.status != "ok" for record in records), len(records))
