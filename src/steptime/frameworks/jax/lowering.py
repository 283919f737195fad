"""A graph as one pure function of weights and batch, which JAX traces."""

from __future__ import annotations

from collections.abc import Callable

from steptime.core.errors import Unsupported
from steptime.frameworks.jax.context import Array, LoweringContext, Weights
from steptime.frameworks.jax.ops import OPS
from steptime.graph import Graph, Layer

IN_FULL = ("batch_norm", "layer_norm")
Lowered = Callable[[dict[str, Array], Array, LoweringContext], Array]


def lower_graph(graph: Graph) -> Lowered:
    """From all weights by canonical name and the batch in the context's layout to the output in logical order."""
    layers = [layer for layer in graph if layer.inputs]
    for layer in layers:
        if layer.op.name not in OPS:
            raise Unsupported(
                f"{graph.name}: JAX has no lowering of {layer.op.name!r} (layer {layer.name!r})."
            )

    def forward(weights: dict[str, Array], x: Array, context: LoweringContext) -> Array:
        values = {graph.input.name: x}
        for layer in layers:
            inputs = [values[name] for name in layer.inputs]
            values[layer.name] = OPS[layer.op.name](
                layer, _own(layer, weights, context), context, *inputs
            )
        return context.layout.logical(values[graph.output])

    return forward


def _own(layer: Layer, weights: dict[str, Array], context: LoweringContext) -> Weights:
    """In the precision of the activations, except for normalisation, which is computed in fp32 at the least."""
    own = {name.rpartition(".")[2]: weights[name] for name in layer.weights}
    return (
        own
        if layer.op.name in IN_FULL
        else {part: w.astype(context.dtype) for part, w in own.items()}
    )
