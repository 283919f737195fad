"""Slices that together cover a tensor: one split and one backward operation for all of them."""

from __future__ import annotations

from typing import Any

from steptime.graph import Graph, Layer


def slice_groups(graph: Graph) -> dict[str, list[Layer]]:
    """By slice: the first of a group -> all slices of the group in order; the others -> []."""
    by_source: dict[str, list[Layer]] = {}
    for layer in graph:
        # Tokens have no backward pass, so nothing is gained.
        if layer.op.name == "slice" and not layer.vocabulary:
            by_source.setdefault(layer.inputs[0], []).append(layer)
    groups: dict[str, list[Layer]] = {}
    for source, slices in by_source.items():
        ordered = sorted(slices, key=_range)
        if len(slices) > 1 and _covers(ordered, graph[source].shape[-1]):
            for layer in slices:
                groups[layer.name] = []
            groups[slices[0].name] = ordered
    return groups


def _range(layer: Layer) -> tuple[int, int]:
    op: Any = layer.op
    return op.start, op.stop


def _covers(slices: list[Layer], size: int) -> bool:
    """Whether they follow each other without gap or overlap, from 0 to `size`."""
    end = 0
    for layer in slices:
        start, stop = _range(layer)
        if start != end:
            return False
        end = stop
    return end == size
