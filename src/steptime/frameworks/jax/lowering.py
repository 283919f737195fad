"""A graph as one pure function of weights and batch, which JAX traces."""

from __future__ import annotations

from collections.abc import Callable

from steptime.core.errors import Unsupported
from steptime.frameworks.jax.context import Array, Walk, Weights
from steptime.frameworks.jax.ops import KINDS
from steptime.graph import Graph, Layer

IN_FULL = ("batch_norm", "layer_norm")
Lowered = Callable[[dict[str, Array], Array, Walk], Array]


def lower_graph(graph: Graph) -> Lowered:
    """From all weights by canonical name and the batch in the walk's layout to the output in logical order."""
    layers = [layer for layer in graph if layer.inputs]
    for layer in layers:
        if layer.kind.name not in KINDS:
            raise Unsupported(
                f"{graph.name}: JAX has no lowering of {layer.kind.name!r} (layer {layer.name!r})."
            )

    def forward(weights: dict[str, Array], x: Array, walk: Walk) -> Array:
        values = {graph.input.name: x}
        for layer in layers:
            inputs = [values[name] for name in layer.inputs]
            values[layer.name] = KINDS[layer.kind.name](
                layer, _own(layer, weights, walk), walk, *inputs
            )
        return walk.layout.logical(values[graph.output])

    return forward


def _own(layer: Layer, weights: dict[str, Array], walk: Walk) -> Weights:
    """In the precision of the activations, except for normalisation, which is computed in fp32 at the least."""
    own = {name.rpartition(".")[2]: weights[name] for name in layer.weights}
    return (
        own
        if layer.kind.name in IN_FULL
        else {part: w.astype(walk.dtype) for part, w in own.items()}
    )
