"""Slices that together are the whole of what they cut: one operation forward and one back, instead of one for each."""

from __future__ import annotations

from typing import Any

from steptime.graph import Graph, Layer


def splits(graph: Graph) -> dict[str, list[Layer]]:
    """First slice of a cut -> all of its slices in order; the others -> nothing, they come with the first."""
    by_source: dict[str, list[Layer]] = {}
    for layer in graph:
        if layer.op.name == "slice" and not layer.vocabulary:
            by_source.setdefault(layer.inputs[0], []).append(layer)
    found: dict[str, list[Layer]] = {}
    for name, pieces in by_source.items():
        ordered = sorted(pieces, key=_ends)
        if len(pieces) > 1 and _tile(ordered, graph[name].shape[-1]):
            found |= {piece.name: [] for piece in pieces} | {pieces[0].name: ordered}
    return found


def _ends(piece: Layer) -> tuple[int, int]:
    op: Any = piece.op
    return op.start, op.stop


def _tile(pieces: list[Layer], size: int) -> bool:
    stops = [0, *(_ends(piece)[1] for piece in pieces)]
    return [_ends(piece)[0] for piece in pieces] == stops[:-1] and stops[-1] == size
