"""`steptime cancel`: takes a campaign out of Slurm's queue."""

from __future__ import annotations

from typing import Annotated

import typer

from steptime.cli import output
from steptime.cli.options import CampaignId, Json
from steptime.cli.request import store_folder


def cancel_command(
    campaign: CampaignId = "",
    waiting: Annotated[
        bool, typer.Option("--waiting", help="Cancel only the jobs that have not started.")
    ] = False,
    json: Json = False,
) -> None:
    """Cancel the jobs of a campaign.

    Results so far stay in the store. `steptime submit` with the same plan continues it."""
    from steptime.run.slurm import campaign as campaigns
    from steptime.store.folder import FolderStore

    store = FolderStore(store_folder())
    folder = campaigns.find(store, campaign)
    count = campaigns.cancel(folder, campaigns.Slurm(), waiting_only=waiting)
    if json:
        output.print_json({"campaign": folder.session, "cancelled_tasks": count})
    else:
        output.echo(f"{count} tasks of campaign {folder.session} are being cancelled.")
