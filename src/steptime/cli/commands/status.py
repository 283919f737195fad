"""`steptime status`: how far a campaign is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from steptime.cli import output
from steptime.cli.options import CampaignId, Json
from steptime.cli.request import store_folder

if TYPE_CHECKING:
    from steptime.run.slurm.progress import Progress

# `--watch nan` passes the range check and must not busy-loop.
SHORTEST_SECONDS = 0.1


def status_command(
    campaign: CampaignId = "",
    watch: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            help="Repeat every so many seconds until the campaign ends.",
            show_default=False,
            min=0,
            max=86400,
        ),
    ] = 0.0,
    json: Json = False,
) -> None:
    """Show the progress of a campaign.

    Counts the processes that wait, run, are done or failed, names the causes of failure, and
    estimates the time left."""
    from steptime.cli.render.campaign import show_progress
    from steptime.run.slurm import campaign as campaigns
    from steptime.store.folder import FolderStore

    folder = campaigns.find(FolderStore(store_folder()), campaign)
    slurm = campaigns.Slurm()
    for progress in poll(lambda: campaigns.update_progress(folder, slurm), watch):
        if json:
            output.print_json(progress.to_dict())
        else:
            show_progress(progress)


def poll(read: Callable[[], Progress], seconds: float) -> Iterator[Progress]:
    """Read the progress once, or every so many seconds until the campaign is over.

    A Slurm controller that stops answering in between may come back."""
    from steptime.run.slurm.campaign import NoAnswer

    progress = read()
    yield progress
    while seconds and not progress.is_over:
        time.sleep(max(SHORTEST_SECONDS, seconds))
        try:
            progress = read()
        # A restart of slurmctld takes seconds to minutes.
        except NoAnswer as problem:
            output.warn(f"note: {problem}")
        else:
            yield progress
