"""The options that several commands share, so that they are named and explained alike."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

# Annotated aliases, because Typer reads the option from the parameter's type.
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Preset = Annotated[
    str, typer.Option(metavar="NAME", help="quick, standard, gold or single.", show_default=False)
]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any setting; repeatable.")
]
Workload = Annotated[
    str, typer.Option(metavar="NAME", help="A network's name, or FILE.py:NAME.", show_default=False)
]
Phase = Annotated[
    str, typer.Option(metavar="NAME", help="training, inference or forward.", show_default=False)
]
Framework = Annotated[str, typer.Option(metavar="NAME", help="pytorch, jax, …", show_default=False)]
Mode = Annotated[
    str, typer.Option(metavar="NAME", help="eager, compiled, graph, …", show_default=False)
]
Precision = Annotated[str, typer.Option(metavar="NAME", help="fp32, bf16, …", show_default=False)]
Device = Annotated[
    str, typer.Option(metavar="NAME", help="cpu, cuda, cuda:1, …", show_default=False)
]
Again = Annotated[bool, typer.Option("--again", help="Measure again even if results exist.")]
PlanName = Annotated[
    str, typer.Argument(help="A plan file, or the name of a shipped plan.", show_default=False)
]
DataFolder = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER", help="Folder of the data sets. Default: $STEPTIME_DATA, else ./data."
    ),
]
# An id begins with the time and ends at random: both ends name a campaign.
CampaignId = Annotated[
    str, typer.Argument(help="The start or end of its id. Default: the newest campaign.")
]
