"""`steptime report [QUERY] -o FILE`: stored results as one self-contained HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steptime.cli.output import check_stdout, echo_about, print_json, write_file
from steptime.cli.render.format import plural
from steptime.core.errors import SteptimeError


def report_command(
    query: Annotated[
        str, typer.Argument(help="What to report on, for example 'x=model&by=framework'.")
    ] = "",
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The HTML file; - prints it.")
    ] = Path("report.html"),
    json: Annotated[
        bool, typer.Option("--json", help="Print the report's content as one JSON document.")
    ] = False,
) -> None:
    """Write stored results as one HTML page.

    The page works offline: headline, charts, tables, failures, method and sources."""
    from steptime.cli.request import open_workspace
    from steptime.index.query import from_url
    from steptime.report.html import render_report
    from steptime.report.report import make_report

    parsed = from_url(query) if query else None
    workspace = open_workspace()
    report = make_report(workspace, parsed)
    if not any(report.counts[name] for name in ("results", "failed", "quarantined")):
        where = f" for {query!r}" if query else ""
        raise SteptimeError(f"No results match this query in {workspace.store.path}{where}.")
    page = render_report(report, workspace.store.path).encode(errors="replace")
    check_stdout(output, json=json)
    write_file(output, page)
    if json:
        print_json(report.to_dict())
    else:
        size = f"{len(page) / 1e3:,.0f} kB"
        echo_about(
            output, f"{output}: {report.headline} ({size}, {plural(len(report.charts), 'chart')})"
        )
