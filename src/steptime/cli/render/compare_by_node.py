"""Two queries of stored results, paired by the node on which they ran, beside what one would think without nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from steptime.cli import output
from steptime.core.errors import SteptimeError

if TYPE_CHECKING:
    from steptime.analysis.by_node import ByNode, Reading
    from steptime.analysis.compare import Verdict
    from steptime.core.record import Record
    from steptime.index.query import Query
    from steptime.index.rows import Row
    from steptime.index.workspace import Workspace

MOST_NODES = 20  # that are listed
WORK = (
    "model", "phase", "unit", "operator", "shape", "precision", "framework", "replica_batch", "effective_batch",
    "optimizer", "threads",
)  # fmt: skip
"""Who differs in one of these does not do the same work."""
WORDS = {
    "same": "B and A take the same time",
    "likely same": "B and A likely take the same time",
    "inconclusive": "Inconclusive",
}


def compare_by_node(a: str, b: str, *, force: str, json: bool) -> None:
    """B names only what differs from A, in the words of `steptime chart`."""
    from steptime.analysis.by_node import by_node
    from steptime.cli.request import open_workspace
    from steptime.core.protocol import Protocol

    first, second = _queries(a, b)
    compared = _compared(first, second, force)
    workspace = open_workspace()
    sides = [list(_readings(workspace, query, compared)) for query in (first, second)]
    found = by_node(sides[0], sides[1], Protocol().same_within)
    if not found.pairs:
        counts = " and ".join(
            f"{len(side)} of {name}" for name, side in zip("AB", sides, strict=True)
        )
        raise SteptimeError(
            f"No node has results of both, equal but for {', '.join(compared)}; found {counts}."
        )
    if json:
        output.document(
            {**found.to_dict(), "a": first.to_url(), "b": second.to_url(), "compared": compared}
        )
    else:
        _show(
            found, [f"{name} {_values(first, name)} → {_values(second, name)}" for name in compared]
        )


def _queries(a: str, b: str) -> tuple[Query, Query]:
    from steptime.index.query import from_url

    first, named = from_url(a), dict(from_url(b).where)
    shared = {key: values for key, values in first.where if key not in named}
    return first, replace(first, where=tuple({**shared, **named}.items()))


def _compared(a: Query, b: Query, force: str) -> list[str]:
    from steptime.run.compare import Refused

    one, other = dict(a.where), dict(b.where)
    found = [name for name in dict.fromkeys((*one, *other)) if one.get(name) != other.get(name)]
    if not found:
        raise SteptimeError(
            "A and B ask for the same results. Name in B what differs, for example 'data=local'."
        )
    reasons = [
        f"{name} differs: {_values(a, name)} and {_values(b, name)}"
        for name in found
        if name in WORK
    ]
    if reasons and not force:
        raise Refused(reasons)
    return found


def _values(query: Query, name: str) -> str:
    return ", ".join(dict(query.where).get(name, ("any",)))


def _readings(workspace: Workspace, query: Query, compared: Sequence[str]) -> Iterator[Reading]:
    """Each process of an own result by itself: those of one case may have run on several nodes."""
    from steptime.analysis.by_node import Reading
    from steptime.core.record import Record
    from steptime.index.catalogue import ALONE, DIMENSIONS

    names = [name for name in DIMENSIONS if name not in (*ALONE, *compared, "server")]
    index = workspace.index
    rows = index.listing(query, max(1, index.matching(query, valued=False)))
    runs = workspace.find_runs([row["id"] for row in rows])
    for row in rows:
        run, what = runs.get(row["id"]), tuple(row.get(name) for name in names)
        found = _processes(run) if isinstance(run, Record) else _foreign(row)
        for node, occasion, seconds in found:
            yield Reading(node=node, occasion=occasion, what=what, seconds=seconds)


def _processes(record: Record) -> Iterator[tuple[str, str, float]]:
    from steptime.analysis.process import measured_processes
    from steptime.analysis.stopping import set_aside
    from steptime.index.rows import server

    parts = measured_processes(record.attempts)
    aside = set_aside(parts)
    for part in parts:
        if part.attempt.id not in aside and (node := server(part.attempt)):
            yield node, record.session, part.typical


def _foreign(row: Row) -> Iterator[tuple[str, str, float]]:
    """Its day is its occasion: other tools' results have no session."""
    seconds = row.get("step_time") or (1 / row["throughput"] if row.get("throughput") else None)
    if seconds and row.get("server"):
        yield row["server"], (row["started"] or "")[:10], seconds


def _show(found: ByNode, differs: list[str]) -> None:
    count = len(found.nodes)
    output.say(f"{_sentence(found.paired)}, paired on {count} node{'s' * (count > 1)}.")
    output.say(_without_nodes(found))
    output.say()
    output.say(f"differs  {', '.join(differs)}")
    if found.paired.p is not None:
        output.say(f"chance   {found.paired.p:.2g} for such a ratio if there were no difference")
    if found.spread is not None:
        output.say(
            f"nodes    the slowest takes ×{found.spread:.3f} of the fastest's time for the same work"
        )
    rows = [[node, f"{ratio:.3f}"] for node, ratio in list(found.nodes.items())[:MOST_NODES]]
    output.table(["node", "B's time over A's"], rows, right=("B's time over A's",))
    if count > MOST_NODES:
        output.say(f"… and {count - MOST_NODES} more; --json has them all.")
    if found.alone:
        output.say(
            f"note: {found.alone} results have no partner on their node and count only where nodes are ignored"
        )
    for remark in found.remarks:
        output.say(f"note: {remark}")


def _without_nodes(found: ByNode) -> str:
    ratio, word = f"×{_ratio(found.naive)} in time", found.naive.word
    if found.agree:
        return f"Without regard to nodes the answer is the same: {ratio}."
    if word == "inconclusive":
        return f"Without regard to nodes nothing could be said: {ratio}."
    seems = "B and A would seem the same" if word == "same" else f"B would seem {word}"
    return f"Without regard to nodes {seems}: {ratio}. That is not to be trusted: how fast the nodes are is in it."


def _sentence(verdict: Verdict) -> str:
    return f"{WORDS.get(verdict.word, f'B is {verdict.word}')}: ×{_ratio(verdict)} in time"


def _ratio(verdict: Verdict) -> str:
    interval = "" if verdict.low is None else f" ({verdict.low:.3f} … {verdict.high:.3f})"
    return f"{verdict.ratio:.3f}{interval}"
