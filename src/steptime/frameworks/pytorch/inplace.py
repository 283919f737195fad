"""Which layers may compute in place: over an input that no layer and no backward pass reads."""

from __future__ import annotations

from collections import Counter

from steptime.graph import Graph

INPLACE_OPS = ("relu", "add")

OVERWRITABLE = frozenset(
    (
        "add",
        "average_pool",
        "batch_norm",
        "concat",
        "conv",
        "dense",
        "embedding",
        "gelu",
        "global_average_pool",
        "max_pool",
        "pad_channels",
        "positions",
        "scale",
        "tied_dense",
        "tied_embedding",
    )
)
"""Ops that return new memory which their own backward pass never reads."""

LOW = frozenset(("attention", "conv", "dense", "gru", "lstm", "rnn", "tied_dense"))
"""Ops whose output has the lower precision under autocast, whatever their input has."""

FULL = frozenset(("embedding", "input", "positions", "tied_embedding"))
"""Ops that read or add weights as they are."""

EITHER = frozenset(("layer_norm", "lrn"))
"""Ops that autocast raises on some devices and leaves alone on others."""

PRECISIONS = {"either": EITHER, "full": FULL, "low": LOW}


def inplace_inputs(graph: Graph) -> dict[str, int]:
    """By layer: the index of the input that its result may overwrite."""
    readers = Counter(name for layer in graph for name in layer.value_inputs)
    precisions = _output_precisions(graph)
    indices = {}
    for layer in graph:
        input_precisions = {precisions[name] for name in layer.inputs}
        # A sum of two precisions has the wider one, and would not fit into the narrower.
        fits = input_precisions in ({"full"}, {"low"})
        if layer.op.name not in INPLACE_OPS or not fits:
            continue
        # The first of several candidates wins.
        for index, name in reversed(list(enumerate(layer.inputs))):
            if readers[name] == 1 and graph[name].op.name in OVERWRITABLE:
                indices[layer.name] = index
    return indices


def _output_precisions(graph: Graph) -> dict[str, str]:
    """What autocast makes of each output: the lower type, or that of its inputs."""
    precisions: dict[str, str] = {}
    for layer in graph:
        for precision, ops in PRECISIONS.items():
            if layer.op.name in ops:
                precisions[layer.name] = precision
                break
        else:
            # In alphabetical order: "either" stays so, and "full" with "low" gives "full".
            precisions[layer.name] = min(precisions[name] for name in layer.inputs)
    return precisions
