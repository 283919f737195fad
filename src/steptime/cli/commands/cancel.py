"""`steptime cancel`: takes a campaign out of Slurm's queue."""

from __future__ import annotations

from typing import Annotated

import typer

from steptime.cli import output
from steptime.cli.request import store_folder


def cancel_command(
    campaign: Annotated[
        str, typer.Argument(help="The begin or end of its id; the newest if left out.")
    ] = "",
    waiting: Annotated[
        bool, typer.Option("--waiting", help="Let what runs come to its end.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Cancel what waits and runs. Results so far stay; `steptime submit` with the same plan goes on."""
    from steptime.run.slurm import campaign as campaigns
    from steptime.store.folder import FolderStore

    folder, slurm = campaigns.find(FolderStore(store_folder()), campaign), campaigns.Slurm()
    count = campaigns.cancel(folder, slurm, waiting_only=waiting)
    if json:
        output.document({"campaign": folder.session, "cancelled_tasks": count})
    else:
        output.say(f"{count} tasks of campaign {folder.session} are being cancelled.")
