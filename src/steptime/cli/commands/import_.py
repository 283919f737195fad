"""`steptime import PATH…`: takes other tools' results into the store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steptime.cli import exit_codes, output
from steptime.cli.options import Json
from steptime.core.errors import SteptimeError


def import_command(
    paths: Annotated[list[Path], typer.Argument(help="Files, or folders with everything in them.")],
    rows: Annotated[bool, typer.Option("--rows", help="Show what became of every row.")] = False,
    json: Json = False,
) -> None:
    """Import results of other tools.

    Reads DLBS, tf_cnn_benchmarks, MLPerf, timm, DeepBench and others, and recognises a format by
    its content. Keeps the original file too. Importing a file again changes nothing."""
    from steptime.cli.import_files import find_files, import_files
    from steptime.cli.render import imports as render
    from steptime.cli.request import store_folder

    files = [file for path in paths for file in find_files(path)]
    if not files:
        raise SteptimeError(f"There is no file in {', '.join(map(str, paths))}.")
    summary = import_files(files, store_folder())
    if json:
        output.print_json(render.to_document(summary, rows=rows))
    else:
        render.show(summary, rows=rows)
    if not summary.readings:
        raise typer.Exit(exit_codes.ALL_FAILED)
    if summary.unreadable:
        raise typer.Exit(exit_codes.SOME_FAILED)
