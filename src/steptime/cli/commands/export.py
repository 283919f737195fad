"""`steptime export FORMAT [QUERY] -o PATH`: stored results as files of another tool."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steptime.cli.output import STDOUT, check_stdout, echo_about, print_json, write_file
from steptime.cli.render.format import plural
from steptime.cli.sample_export import export_samples, no_results
from steptime.core.errors import SteptimeError

if TYPE_CHECKING:
    from steptime.formats._writer import Page, Writing
    from steptime.index.query import Query
    from steptime.index.workspace import Workspace


def export_command(
    format: Annotated[
        str,
        typer.Argument(
            help="csv, parquet, psc, dlbs, pytorch_benchmark, dawnbench or "
            "mlperf_training_log (MLLOG)."
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
            metavar="PATH",
            help="A file, or a folder if the format has one file per result; - prints it.",
        ),
    ],
    samples: Annotated[
        bool,
        typer.Option(
            "--samples", help="Write every sample, one line each, instead of the results."
        ),
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print what was written and what not, as JSON.")
    ] = False,
) -> None:
    """Write stored results in another tool's format.

    Each file is read back before it is written. Values that the format cannot hold are listed."""
    check_stdout(output, json=json)
    if samples:
        export_samples(format, query, output, json=json)
    else:
        _export_results(format, query, output, json=json)


def _export_results(format: str, query: str, output: Path, *, json: bool) -> None:
    from steptime.cli.request import open_workspace
    from steptime.formats._writer import write
    from steptime.index.query import from_url

    workspace = open_workspace()
    writing = write(format, _rows(workspace, from_url(query)))
    if not writing.pages:
        raise _nothing_to_write(writing, format, query, workspace)
    paths = _paths(output, writing.pages)
    for page, path in zip(writing.pages, paths, strict=True):
        write_file(path, page.data)
    if json:
        print_json(writing.to_dict() | {"paths": [str(path) for path in paths]})
    else:
        _show(writing, paths, output)


def _nothing_to_write(
    writing: Writing, format: str, query: str, workspace: Workspace
) -> SteptimeError:
    if not writing.skipped:
        return no_results(query, workspace)
    reasons = Counter(skipped.reason for skipped in writing.skipped)
    reason, _ = reasons.most_common(1)[0]
    return SteptimeError(f"No result can be written as {format}: {reason}.")


def _rows(workspace: Workspace, query: Query) -> list[dict[str, Any]]:
    """The rows of the index, with their details."""
    from steptime.formats._details import details

    index = workspace.index
    rows = index.list_runs(query, max(1, index.count_runs(query, valued=False)))
    runs = workspace.find_runs([row["id"] for row in rows])
    for row in rows:
        if row["id"] in runs:
            row |= details(runs[row["id"]])
    return rows


def _paths(output: Path, pages: tuple[Page, ...]) -> list[Path]:
    """A single file gets the name of the output; several, or one in a folder, keep their own."""
    # In an existing folder even a single file keeps its own name.
    if len(pages) == 1 and not output.is_dir():
        return [output]
    if output == STDOUT or output.is_file():
        raise SteptimeError(f"The export has {len(pages)} files: {output} must be a folder.")
    paths = [output / page.name for page in pages]
    try:
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise SteptimeError(f"{output} cannot be created: {problem.strerror}.") from problem
    return paths


def _show(writing: Writing, paths: list[Path], output: Path) -> None:
    target = paths[0] if len(paths) == 1 else output
    results = plural(writing.written, "result")
    echo_about(
        output,
        f"{target}: {results} as {writing.to_dict()['title']}, {plural(len(paths), 'file')}.",
    )
    reasons = Counter(skipped.reason for skipped in writing.skipped)
    for reason, count in reasons.most_common():
        echo_about(output, f"  left out {count}: {reason}")
    if writing.absent:
        echo_about(output, f"  the format has no place for {_counts(writing.absent)}")
    if writing.changed:
        echo_about(
            output, f"  readers of the format assume another value for {_counts(writing.changed)}"
        )


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in counts.most_common())
