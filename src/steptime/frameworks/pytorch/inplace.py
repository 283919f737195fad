"""Which layers may write their result over an input: one that nobody reads again, no layer and no backward pass."""

from __future__ import annotations

from collections import Counter

from steptime.graph import Graph

OVERWRITERS = ("relu", "add")

OVERWRITABLE = frozenset(
    ("add", "average_pool", "batch_norm", "conv", "dense", "embedding", "global_average_pool", "max_pool")
)
"""Kinds that return fresh memory which their own backward pass never reads."""

COMPUTES = frozenset(("conv", "dense", "lstm"))
"""Kinds whose output has the lower precision under autocast, whatever their input has."""


def overwrites(graph: Graph) -> dict[str, int]:
    """Layer -> the place of the input whose memory its result takes."""
    readers = Counter(name for layer in graph for name in layer.inputs)
    precision = _precisions(graph)
    found = {}
    for layer in graph:
        if layer.kind.name not in OVERWRITERS or len({precision[name] for name in layer.inputs}) > 1:
            continue  # a sum of two precisions has the wider one, and would not fit
        for place, name in reversed(list(enumerate(layer.inputs))):
            if readers[name] == 1 and graph[name].kind.name in OVERWRITABLE:
                found[layer.name] = place
    return found


def _precisions(graph: Graph) -> dict[str, str]:
    """What autocast makes of each output: the lower type, or that of where it came from."""
    found: dict[str, str] = {}
    for layer in graph:
        if layer.kind.name in COMPUTES:
            found[layer.name] = "low"
        elif layer.kind.name == "embedding" or not layer.inputs:
            found[layer.name] = "full"
        else:
            found[layer.name] = min(found[name] for name in layer.inputs)  # "full" comes before "low"
    return found
