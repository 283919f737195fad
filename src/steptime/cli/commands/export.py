"""`steptime export FORMAT [QUERY] -o PATH`: stored results as files of another tool, and what those cannot hold."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steptime.cli.output import document, say, write_file
from steptime.core.errors import SteptimeError

if TYPE_CHECKING:
    from steptime.formats._writer import Page, Writing
    from steptime.index.query import Query
    from steptime.index.workspace import Workspace


def export_command(
    format: Annotated[
        str,
        typer.Argument(
            help="csv, parquet, psc, dlbs, pytorch_benchmark, dawnbench or mlperf_training_log (MLLOG)."
        ),
    ],
    query: Annotated[
        str, typer.Argument(help="Which results, for example 'model=resnet50&phase=training'.")
    ] = "",
    *,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="A file, or a folder for a format that has a file for each result.",
        ),
    ],
    json: Annotated[
        bool, typer.Option("--json", help="Print what was written, and what not, as JSON.")
    ] = False,
) -> None:
    """Writes stored results as other tools have them.

    Each file is read back before it is written: what the format has no place for is told, with how often and why."""
    from steptime.cli.request import open_workspace
    from steptime.formats._writer import write
    from steptime.index.query import from_url

    workspace = open_workspace()
    found = write(format, _rows(workspace, from_url(query)))
    if not found.pages:
        told = Counter(one.reason for one in found.skipped).most_common(1)
        why = f": {told[0][0]}" if told else f" in {workspace.store.path}"
        raise SteptimeError(f"No result fits {query!r} and {format}{why}.")
    paths = _paths(output, found.pages)
    for page, path in zip(found.pages, paths, strict=True):
        write_file(path, page.data)
    if json:
        document({**found.to_dict(), "paths": [str(path) for path in paths]})
    else:
        _tell(found, paths, output)


def _rows(workspace: Workspace, query: Query) -> list[dict[str, Any]]:
    """With what a row does not hold: why it failed, and what else a foreign file said."""
    from steptime.core.record import Record

    index = workspace.index
    rows = index.listing(query, max(1, index.matching(query, valued=False)))
    runs = workspace.find_runs([row["id"] for row in rows])
    for row in rows:
        run = runs.get(row["id"])
        if isinstance(run, Record) and not run.measurements and run.failures:
            row["failure"] = run.failures[-1].reason
        elif run is not None and not isinstance(run, Record):
            row |= {"failure": run.failure, "more": run.more}
    return rows


def _paths(output: Path, pages: tuple[Page, ...]) -> list[Path]:
    """One file goes where it was asked for; several, or one into a folder, keep the names that their format gives."""
    if not (output.is_dir() or len(pages) > 1):
        return [output]
    if output.is_file():
        raise SteptimeError(f"{len(pages)} files are to be written: {output} must be a folder.")
    paths = [output / page.name for page in pages]
    try:
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise SteptimeError(f"{output} cannot be made: {problem.strerror}.") from problem
    return paths


def _tell(found: Writing, paths: list[Path], output: Path) -> None:
    place = paths[0] if len(paths) == 1 else output
    say(
        f"{place}: {found.written} results as {found.to_dict()['title']}, {len(paths)} file{'s' * (len(paths) > 1)}."
    )
    for reason, count in Counter(one.reason for one in found.skipped).most_common():
        say(f"  left out {count}: {reason}")
    for counts, why in (
        (found.absent, "the format has no place for"),
        (found.changed, "readers of the format assume another value for"),
    ):
        if counts:
            say(f"  {why} {', '.join(f'{name} ({count})' for name, count in counts.most_common())}")
