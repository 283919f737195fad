"""A graph as one pure function of weights and batch, which JAX traces."""

from __future__ import annotations

from collections.abc import Callable

from steptime.core.errors import Unsupported
from steptime.frameworks.jax.context import Array, LoweringContext, Weights
from steptime.frameworks.jax.ops import OPS
from steptime.graph import Graph, Layer

# Normalisation computes at least in fp32, so it gets its weights as they are stored.
STORED_PRECISION = ("batch_norm", "layer_norm")
Lowered = Callable[[dict[str, Array], Array, LoweringContext], Array]


def lower_graph(graph: Graph) -> Lowered:
    """The function takes all weights by canonical name and the batch in the layout of the context.
    It returns the output in logical order."""
    layers = [layer for layer in graph if layer.inputs]
    for layer in layers:
        if layer.op.name not in OPS:
            raise Unsupported(
                f"{graph.name}: JAX has no lowering of {layer.op.name!r} (layer {layer.name!r})."
            )

    def forward(weights: dict[str, Array], x: Array, context: LoweringContext) -> Array:
        values = {graph.input.name: x}
        for layer in layers:
            compute = OPS[layer.op.name]
            inputs = [values[name] for name in layer.value_inputs]
            layer_weights = _layer_weights(layer, weights, context)
            values[layer.name] = compute(layer, layer_weights, context, *inputs)
        return context.layout.to_logical(values[graph.output])

    return forward


def _layer_weights(layer: Layer, weights: dict[str, Array], context: LoweringContext) -> Weights:
    """Cast to the precision of the activations, except for normalisation."""
    layer_weights = {}
    for name in layer.weights:
        weight = weights[name]
        if layer.op.name not in STORED_PRECISION:
            weight = weight.astype(context.dtype)
        layer_weights[name.rpartition(".")[2]] = weight
    return layer_weights
