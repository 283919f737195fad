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
    from steptime.cli.request import open_workspace
    from steptime.index.query import from_url
    from steptime.report.html import render_report
    from steptime.report.report import make_report

    asked = from_url(query) if query else None
    workspace = open_workspace()
    report = make_report(workspace, asked)
    page = render_report(report, workspace.store.path).encode()
    write_file(output, page)
    if json:
        document(report.to_dict())
    else:
        say(f"{output}: {report.headline} ({len(page) / 1e3:,.0f} kB, {len(report.charts)} charts)")
