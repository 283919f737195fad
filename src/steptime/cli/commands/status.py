"""`steptime status`: how far a campaign is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from steptime.cli import output
from steptime.cli.render.format import clock, described, differing
from steptime.cli.request import store_folder

if TYPE_CHECKING:
    from steptime.run.slurm.progress import Progress

FAILED_MOST = 20
SHORTEST_SECONDS = 0.1  # also for what is not a number


def status_command(
    campaign: Annotated[
        str, typer.Argument(help="The begin or end of its id; the newest if left out.")
    ] = "",
    watch: Annotated[
        float,
        typer.Option(
            help="Show it every so many seconds until all is over.",
            show_default=False,
            min=0,
            max=86400,
        ),
    ] = 0.0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Show what waits, runs, is done or failed, with the causes, and the time left."""
    from steptime.run.slurm import campaign as campaigns
    from steptime.store.folder import FolderStore

    folder, slurm = campaigns.find(FolderStore(store_folder()), campaign), campaigns.Slurm()
    for found in watched(lambda: campaigns.look(folder, slurm), watch):
        if json:
            output.document(found.to_dict())
        else:
            _show(found)


def watched(look: Callable[[], Progress], seconds: float) -> Iterator[Progress]:
    """Once, or every so many seconds until all is over. A controller that goes away meanwhile may come back."""
    from steptime.run.slurm.campaign import NoAnswer

    yield (found := look())
    while seconds and not found.is_over:
        time.sleep(max(SHORTEST_SECONDS, seconds))
        try:
            found = look()
        except NoAnswer as problem:
            output.warn(f"note: {problem}")
        else:
            yield found


def _show(found: Progress) -> None:
    from steptime.run.slurm.progress import STATES, WAITING

    names = list(dict.fromkeys(place.case.node_type for place in found.places))
    rows = []
    for name in [*names, None] if len(names) > 1 else [None]:
        own = [place for place in found.places if name is None or place.case.node_type == name]
        rows.append(
            [name or "all", *(str(sum(place.state == state for place in own)) for state in STATES)]
        )
    left = "" if found.is_over else f", {_left(found)}"
    output.say(f"{found.name}: {found.count('done')} of {len(found.places)} processes done{left}.")
    output.table(["nodes", *STATES], rows, right=STATES)
    if reasons := sorted(
        {place.reason for place in found.places if place.state == WAITING and place.reason}
    ):
        output.say(f"Slurm's reason for those that wait: {', '.join(reasons)}.")
    _failures(found)
    if found.ghosts:
        output.say(f"{found.ghosts} late results of lost nodes are kept aside.")
    output.say(f"Campaign {found.session}; Slurm's arrays {', '.join(found.arrays) or 'are gone'}.")


def _failures(found: Progress) -> None:
    if not found.causes:
        return
    causes = ", ".join(
        f"{cause.replace('_', ' ')} {count}" for cause, count in found.causes.most_common()
    )
    output.say(f"failed: {causes}; `steptime submit` with the same plan tries again.")
    names = differing([place.case for place in found.places])
    failed = [place for place in found.places if place.cause]
    for place in failed[:FAILED_MOST]:
        output.say(f"  {described(place.case, names)}: {place.cause}. {place.reason}")
    if len(failed) > FAILED_MOST:
        output.say(f"  … and {len(failed) - FAILED_MOST} more; --json has them all.")


def _left(found: Progress) -> str:
    if found.seconds_left is None:
        return "time left not known yet"
    return f"about {clock(found.seconds_left)} left, {found.basis}"
