"""`steptime chart QUERY -o FILE`: what a query finds, as a picture."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steptime.cli.output import document, say, write_file
from steptime.core.errors import SteptimeError

if TYPE_CHECKING:
    from steptime.index.index import Point
    from steptime.index.query import Query

KINDS = (".svg", ".png", ".json")


def chart_command(
    query: Annotated[
        str, typer.Argument(help="For example 'x=task_loss&y=throughput&by=framework,precision'.")
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="A picture: .svg, .png, or .json (its Vega-Lite)."),
    ],
    json: Annotated[
        bool, typer.Option("--json", help="Print the rows that were drawn as one JSON document.")
    ] = False,
) -> None:
    """Draws stored results."""
    from steptime.charts.chart import make_spec
    from steptime.cli.request import open_workspace
    from steptime.index.query import from_url

    asked = from_url(query)
    if output.suffix not in KINDS:
        raise SteptimeError(f"A picture is {', '.join(KINDS)}; found {output.name!r}.")
    workspace = open_workspace()
    index = workspace.index
    points = index.points(asked)
    if not points:
        raise SteptimeError(
            f"Nothing in {workspace.store.path} has {asked.y} and {asked.x} and fits {query!r}."
        )
    _write(output, make_spec(asked, points, index.values, index.unit(asked)))
    mixed = index.mixed(asked)
    if json:
        document(
            {"query": asked.to_url(), "points": [asdict(point) for point in points], "mixed": mixed}
        )
    else:
        _tell(output, asked, points, mixed)


def _write(path: Path, chart: dict[str, Any]) -> None:
    from steptime.charts.draw import draw

    write_file(path, draw(path.suffix, chart))


def _tell(path: Path, asked: Query, points: list[Point], mixed: dict[str, int]) -> None:
    runs = sum(point.n for point in points)
    say(f"{path}: {len(points)} points of {runs} results, {asked.y} against {asked.x}.")
    if mixed:
        names = ", ".join(f"{name} ({count} values)" for name, count in mixed.items())
        say(
            f"A point may mix runs that differ in {names}: name one value as a filter, or add it to by or split."
        )
