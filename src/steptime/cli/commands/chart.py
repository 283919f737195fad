"""`steptime chart QUERY -o FILE`: the results of a query as a chart."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steptime.cli.output import STDOUT, check_stdout, echo_about, print_json, write_file
from steptime.cli.render.format import plural
from steptime.core.errors import SteptimeError

if TYPE_CHECKING:
    from steptime.index.index import Point
    from steptime.index.query import Query

SUFFIXES = (".svg", ".png", ".pdf", ".json")


def chart_command(
    query: Annotated[
        str, typer.Argument(help="For example 'x=task_loss&y=throughput&by=framework,precision'.")
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The chart: .svg, .png, .pdf, or .json (Vega-Lite); - prints SVG.",
        ),
    ],
    json: Annotated[
        bool, typer.Option("--json", help="Print the points as one JSON document.")
    ] = False,
) -> None:
    """Draw stored results as a chart."""
    from steptime.charts.chart import make_spec
    from steptime.charts.draw import draw
    from steptime.cli.request import open_workspace
    from steptime.index.query import from_url

    parsed = from_url(query)
    suffix = ".svg" if output == STDOUT else output.suffix
    if suffix not in SUFFIXES:
        raise SteptimeError(
            f"A chart is a file that ends in {', '.join(SUFFIXES)}; found {output.name!r}."
        )
    workspace = open_workspace()
    index = workspace.index
    points = index.points(parsed)
    if not points:
        raise SteptimeError(
            f"No results match this query in {workspace.store.path}: "
            f"none has {parsed.y} and {parsed.x} for {query!r}."
        )
    chart = make_spec(parsed, points, index.values, index.unit(parsed))
    check_stdout(output, json=json)
    write_file(output, draw(suffix, chart))
    # Dimensions with several values that no axis, group or filter separates.
    mixed = index.mixed_dimensions(parsed)
    if json:
        entries = [asdict(point) for point in points]
        print_json({"query": parsed.to_url(), "points": entries, "mixed": mixed})
    else:
        _show(output, parsed, points, mixed)


def _show(path: Path, query: Query, points: list[Point], mixed: dict[str, int]) -> None:
    results = plural(sum(point.n for point in points), "result")
    echo_about(
        path, f"{path}: {plural(len(points), 'point')} from {results}, {query.y} against {query.x}."
    )
    if mixed:
        names = ", ".join(f"{name} ({count} values)" for name, count in mixed.items())
        echo_about(path, f"A point may mix results that differ in {names}.")
        echo_about(path, "Filter by one value, or add the name to by or split.")
