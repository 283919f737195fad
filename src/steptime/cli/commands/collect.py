"""`steptime collect`: takes in what a campaign brought and shows it like a run."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Annotated

import typer

from steptime.cli import output
from steptime.cli.commands.status import watched
from steptime.cli.render.format import processes
from steptime.cli.request import store_folder, warn_of_problems

POLL_SECONDS = 2.0
ALL_FAILED, SOME_FAILED = 3, 4


def collect_command(
    campaign: Annotated[
        str, typer.Argument(help="The begin or end of its id; the newest if left out.")
    ] = "",
    wait: Annotated[
        bool, typer.Option("--wait", help="Until nothing waits or runs any more.")
    ] = False,
    archive: Annotated[
        Path | None,
        typer.Option(help="A folder for PSC's files, table and charts.", show_default=False),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Write down what failed and why, and show the results so far.

    Results are in the store as soon as a process ends; nothing is lost if this is never called."""
    from steptime.analysis.certificates import TASK, certificates
    from steptime.cli.render import archive as archives
    from steptime.cli.render import results
    from steptime.run.slurm import campaign as campaigns
    from steptime.store.folder import FolderStore

    store = FolderStore(store_folder())
    folder, slurm = campaigns.find(store, campaign), campaigns.Slurm()
    campaigns.collect(folder, slurm)
    looks = watched(lambda: campaigns.look(folder, slurm), POLL_SECONDS if wait else 0.0)
    found = deque(looks, maxlen=1)[0]
    campaigns.collect(folder, slurm)
    records = campaigns.records(folder)
    warn_of_problems(store)
    known = certificates(store.attempts(TASK))
    if json:
        paths = archives.archive(records, archive) if archive else []
        told = {"progress": found.to_dict(), "archive": [str(path) for path in paths]}
        output.document({**results.as_document(records, known), **told})
    else:
        results.show(records, known)
        if not found.is_over:
            output.say(
                f"\nNot over yet: {processes(found.count('waiting') + found.count('running'))} to come."
            )
        if archive:
            archives.tell(archives.archive(records, archive), archive)
    failed = sum(record.status != "ok" for record in records)
    if failed:
        raise typer.Exit(ALL_FAILED if failed == len(records) else SOME_FAILED)
