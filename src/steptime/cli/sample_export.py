"""`steptime export FORMAT --samples`: raw samples of the stored results that match a query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steptime.cli.output import echo_about, open_output, print_json
from steptime.cli.render.format import plural
from steptime.core.errors import SteptimeError
from steptime.core.foreign import ForeignRun

if TYPE_CHECKING:
    from steptime.core.record import Record
    from steptime.formats._samples import Line
    from steptime.index.workspace import Workspace

# Results that are in memory together: finding one among many in a part takes as long as all.
BATCH = 16
UNREADABLE = "gone or not readable any more"
IMPORTED = "imported without samples"
FAILED = "failed before the first sample"


class SampleReader:
    """The lines of a query's results, read a few results at a time, and what was left out."""

    def __init__(self, workspace: Workspace, ids: list[str]) -> None:
        self._workspace = workspace
        self._ids = ids
        self.results = 0
        # How many results have no samples, by the reason.
        self.left_out: Counter[str] = Counter()

    def lines(self) -> Iterator[Line]:
        for first in range(0, len(self._ids), BATCH):
            ids = self._ids[first : first + BATCH]
            runs = self._workspace.find_runs(ids)
            for identifier in ids:
                yield from self._lines_of(identifier, runs.get(identifier))

    def _lines_of(self, identifier: str, run: Record | ForeignRun | None) -> Iterator[Line]:
        from steptime.formats._samples import sample_lines

        if run is None:
            self.left_out[UNREADABLE] += 1
            return
        if isinstance(run, ForeignRun):
            self.left_out[IMPORTED] += 1
            return
        line = None
        for line in sample_lines(identifier, run):
            yield line
        if line is None:
            self.left_out[FAILED] += 1
        else:
            self.results += 1


def export_samples(format: str, query: str, output: Path, *, json: bool) -> None:
    from steptime.cli.request import open_workspace
    from steptime.formats._samples import SCHEMA, WRITERS
    from steptime.index.query import from_url

    if format not in WRITERS:
        raise SteptimeError(
            f"Only {' and '.join(WRITERS)} hold samples; found {format!r}. "
            "Leave out --samples to write results."
        )
    workspace = open_workspace()
    index = workspace.index
    selection = from_url(query)
    rows = index.list_runs(selection, max(1, index.count_runs(selection, valued=False)))
    if not rows:
        raise no_results(query, workspace)
    path = output / f"samples.{format}" if output.is_dir() else output
    reader = SampleReader(workspace, [row["id"] for row in rows])
    with open_output(path) as stream:
        count = WRITERS[format](reader.lines(), stream)
        if not count:
            reasons = _reasons(reader.left_out)
            raise SteptimeError(f"No result of this query has samples: {reasons}.")
    summary: dict[str, Any] = {"format": format, "schema": SCHEMA, "path": str(path)}
    summary |= {"samples": count, "results": reader.results, "left_out": dict(reader.left_out)}
    if json:
        print_json(summary)
        return
    results = plural(reader.results, "result")
    echo_about(output, f"{path}: {plural(count, 'sample')} of {results}, as {SCHEMA}.")
    if reader.left_out:
        echo_about(output, f"  left out: {_reasons(reader.left_out)}")


def _reasons(left_out: Counter[str]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in left_out.most_common())


def no_results(query: str, workspace: Workspace) -> SteptimeError:
    where = f"in {workspace.store.path}" + (f": {query!r}" if query else "")
    return SteptimeError(f"No results match this query {where}.")
