"""A comparison paired by node, beside the verdict that ignores the nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steptime.cli import output
from steptime.cli.render.comparison import (
    echo_line,
    ratio_text,
    show_p_value,
    verdict_sentence,
)
from steptime.cli.render.format import plural
from steptime.cli.render.table import Column, print_table, quantity

if TYPE_CHECKING:
    from steptime.analysis.by_node import ByNode
    from steptime.cli.node_query import NodeComparison

# A screen; a large cluster has thousands.
MOST_NODES = 20


def to_document(answer: NodeComparison) -> dict[str, Any]:
    return {
        **answer.by_node.to_dict(),
        "a": answer.a.to_url(),
        "b": answer.b.to_url(),
        "compared": answer.compared,
    }


def show(answer: NodeComparison) -> None:
    comparison = answer.by_node
    count = len(comparison.nodes)
    verdict = comparison.paired
    output.echo(f"{verdict_sentence(verdict)}, paired on {plural(count, 'node')}.")
    output.echo(_unpaired_sentence(comparison))
    output.echo()
    differences = [answer.difference(name) for name in answer.compared]
    echo_line("differs", ", ".join(differences))
    show_p_value(verdict)
    if comparison.spread is not None:
        echo_line(
            "nodes",
            f"for the same work the slowest takes ×{comparison.spread:.3f} the time of the fastest",
        )
    nodes = list(comparison.nodes.items())[:MOST_NODES]
    rows = [[node, f"{ratio:.3f}"] for node, ratio in nodes]
    print_table([Column("node", stays=True), quantity("B's time over A's")], rows)
    if count > MOST_NODES:
        output.echo(f"… and {count - MOST_NODES} more; --json lists them all.")
    if comparison.unpaired:
        output.echo(
            f"note: {comparison.unpaired} results have no partner on their node; "
            "only the unpaired ratio counts them"
        )
    for remark in comparison.remarks:
        output.echo(f"note: {remark}")


def _unpaired_sentence(comparison: ByNode) -> str:
    """What one would conclude without regard to nodes."""
    verdict = comparison.naive.outcome
    ratio = f"×{ratio_text(comparison.naive)} in time"
    if comparison.agree:
        return f"Without pairing the verdict is the same: {ratio}."
    if verdict == "inconclusive":
        return f"Without pairing it would be inconclusive: {ratio}."
    seems = "B and A would seem the same" if verdict == "same" else f"B would seem {verdict}"
    return f"Without pairing {seems}: {ratio}. Differences between nodes bias that ratio."
