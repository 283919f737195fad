"""Which layers may write their result over an input: one that nobody reads again, no layer and no backward pass."""

from __future__ import annotations

from collections import Counter

from steptime.graph import Graph

OVERWRITERS = ("relu", "add")

OVERWRITABLE = frozenset((
    "add", "average_pool", "batch_norm", "concat", "conv", "dense", "embedding", "gelu", "global_average_pool",
    "max_pool", "pad_channels", "positions", "scale", "tied_dense", "tied_embedding",
))  # fmt: skip
"""Kinds that return fresh memory which their own backward pass never reads."""

LOW = frozenset(("attention", "conv", "dense", "gru", "lstm", "rnn", "tied_dense"))
"""Kinds whose output has the lower precision under autocast, whatever their input has."""

FULL = frozenset(("embedding", "input", "positions", "tied_embedding"))
"""Kinds that read or add weights as they are."""

EITHER = frozenset(("layer_norm", "lrn"))
"""Kinds that autocast raises on some devices and leaves alone on others."""

WORDS = {"either": EITHER, "full": FULL, "low": LOW}


def overwrites(graph: Graph) -> dict[str, int]:
    """Layer -> the place of the input whose memory its result takes."""
    readers = Counter(name for layer in graph for name in layer.value_inputs)
    precision = _precisions(graph)
    found = {}
    for layer in graph:
        found_in = {precision[name] for name in layer.inputs}
        if layer.op.name not in OVERWRITERS or found_in not in ({"full"}, {"low"}):
            continue  # a sum of two precisions has the wider one, and would not fit
        for place, name in reversed(list(enumerate(layer.inputs))):
            if readers[name] == 1 and graph[name].op.name in OVERWRITABLE:
                found[layer.name] = place
    return found


def _precisions(graph: Graph) -> dict[str, str]:
    """What autocast makes of each output: the lower type, or that of where it came from."""
    found: dict[str, str] = {}
    for layer in graph:
        own = next((word for word, ops in WORDS.items() if layer.op.name in ops), None)
        # In this order: what may be either stays so, and "full" with "low" gives "full".
        found[layer.name] = own or min(found[name] for name in layer.inputs)
    return found
