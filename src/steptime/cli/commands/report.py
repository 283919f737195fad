"""`steptime report [QUERY] -o FILE`: what is stored, as one page that needs nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steptime.cli.output import document, say, write_file


def report_command(
    query: Annotated[
        str, typer.Argument(help="What to report on, for example 'x=model&by=framework'.")
    ] = "",
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file.")] = Path(
        "report.html"
    ),
    json: Annotated[
        bool, typer.Option("--json", help="Print what the report tells as one JSON document.")
    ] = False,
) -> None:
    """Writes one offline HTML page: the answer first, charts, tables, what failed, the method, where it comes from."""
    from steptime.cli.request import opened_desk
    from steptime.index.query import from_url
    from steptime.report.report import as_html, made

    asked, desk = from_url(query) if query else None, opened_desk()
    report = made(desk, asked)
    page = as_html(desk, report).encode()
    write_file(output, page)
    if json:
        document(report.to_dict())
    else:
        say(f"{output}: {report.headline} ({len(page) / 1e3:,.0f} kB, {len(report.charts)} charts)")
