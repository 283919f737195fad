"""Two queries of stored results, paired by the node on which they ran."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from steptime.cli.request import open_workspace
from steptime.core.errors import SteptimeError

if TYPE_CHECKING:
    from steptime.analysis.by_node import ByNode, Reading
    from steptime.core.record import Record
    from steptime.index.query import Query
    from steptime.index.rows import Row
    from steptime.index.workspace import Workspace

# Results that differ in one of these did not do the same work.
WORK = (
    "model",
    "phase",
    "unit",
    "operator",
    "shape",
    "precision",
    "framework",
    "replica_batch",
    "effective_batch",
    "optimizer",
    "threads",
)
# The node, the session or day, and the seconds of a step.
Timing = tuple[str, str, float]


@dataclass(frozen=True)
class NodeComparison:
    a: Query
    b: Query
    compared: list[str]
    by_node: ByNode

    def difference(self, name: str) -> str:
        return f"{name} {_values(self.a, name)} → {_values(self.b, name)}"


def compare_by_node(a: str, b: str, force: str) -> NodeComparison:
    """A and B are queries as in `steptime chart`; B names only what differs from A."""
    from steptime.analysis.by_node import by_node
    from steptime.core.protocol import Protocol

    first, second = _queries(a, b)
    compared = _compared_names(first, second, force)
    workspace = open_workspace()
    readings_a = list(_readings(workspace, first, compared))
    readings_b = list(_readings(workspace, second, compared))
    comparison = by_node(readings_a, readings_b, Protocol().same_within)
    if not comparison.pairs:
        counts = f"{len(readings_a)} of A and {len(readings_b)} of B"
        raise SteptimeError(
            f"No node has results of both that differ only in {', '.join(compared)}; "
            f"found {counts}."
        )
    return NodeComparison(first, second, compared, comparison)


def _queries(a: str, b: str) -> tuple[Query, Query]:
    from steptime.index.query import from_url

    first = from_url(a)
    # Settings of B replace those of A with the same name.
    filters = dict(first.where) | dict(from_url(b).where)
    return first, replace(first, where=tuple(filters.items()))


def _compared_names(a: Query, b: Query, force: str) -> list[str]:
    from steptime.run.compare import Refused

    first, second = dict(a.where), dict(b.where)
    names = [name for name in first | second if first.get(name) != second.get(name)]
    if not names:
        raise SteptimeError(
            "A and B ask for the same results. Name in B what differs, for example 'data=local'."
        )
    reasons = []
    for name in names:
        if name in WORK:
            reasons.append(f"{name} differs: {_values(a, name)} and {_values(b, name)}")
    if reasons and not force:
        raise Refused(reasons)
    return names


def _values(query: Query, name: str) -> str:
    return ", ".join(dict(query.where).get(name, ("any",)))


def _readings(workspace: Workspace, query: Query, compared: Sequence[str]) -> Iterator[Reading]:
    """Each process by itself: the processes of one case may have run on several nodes."""
    from steptime.analysis.by_node import Reading
    from steptime.core.record import Record
    from steptime.index.catalogue import ALONE, DIMENSIONS

    # Two results pair if they agree in everything else.
    ignored = {*ALONE, *compared, "server"}
    names = [name for name in DIMENSIONS if name not in ignored]
    index = workspace.index
    rows = index.list_runs(query, max(1, index.count_runs(query, valued=False)))
    runs = workspace.find_runs([row["id"] for row in rows])
    for row in rows:
        run = runs.get(row["id"])
        configuration: tuple[Any, ...] = tuple(row.get(name) for name in names)
        timings = _process_timings(run) if isinstance(run, Record) else _imported_timings(row)
        for node, occasion, seconds in timings:
            yield Reading(node=node, occasion=occasion, what=configuration, seconds=seconds)


def _process_timings(record: Record) -> Iterator[Timing]:
    from steptime.analysis.process import measured_processes
    from steptime.analysis.stopping import set_aside
    from steptime.index.rows import server

    processes = measured_processes(record.attempts)
    aside = set_aside(processes)
    for process in processes:
        node = server(process.attempt)
        # The same processes are set aside as in the result of the case.
        if node and process.attempt.id not in aside:
            yield node, record.session, process.typical


def _imported_timings(row: Row) -> Iterator[Timing]:
    """The occasion is the day: results of other tools have no session."""
    seconds = row.get("step_time")
    if not seconds and row.get("throughput"):
        seconds = 1 / row["throughput"]
    if seconds and row.get("server"):
        yield row["server"], (row["started"] or "")[:10], seconds
