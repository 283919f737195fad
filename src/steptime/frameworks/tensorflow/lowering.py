"""A graph as one function of variables and batch, which TensorFlow runs as it comes or traces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from steptime.core.errors import Unsupported
from steptime.frameworks.tensorflow import layout
from steptime.frameworks.tensorflow.context import Array, LoweringContext
from steptime.frameworks.tensorflow.ops import AS_STORED, OPS
from steptime.graph import Graph, Layer

Lowered = Callable[[dict[str, Any], Array, LoweringContext], Array]


def lower_graph(graph: Graph) -> Lowered:
    """From all variables by canonical name and the stored batch to the output in logical order."""
    layers = [layer for layer in graph if layer.inputs]
    for layer in layers:
        if layer.op.name not in OPS:
            raise Unsupported(
                f"{graph.name}: TensorFlow has no lowering of {layer.op.name!r} (layer {layer.name!r})."
            )
    parts = {
        layer.name: [(name.rpartition(".")[2], name) for name in layer.weights] for layer in layers
    }

    def forward(variables: dict[str, Any], x: Array, context: LoweringContext) -> Array:
        values = {graph.input.name: x}
        for layer in layers:
            own = {
                part: _ready(layer, variables[name], context) for part, name in parts[layer.name]
            }
            inputs = [values[name] for name in layer.inputs]
            values[layer.name] = OPS[layer.op.name](layer, own, context, *inputs)
        return layout.logical(values[graph.output])

    return forward


def _ready(layer: Layer, variable: Any, context: LoweringContext) -> Any:
    """In the precision of the activations."""
    return variable if layer.op.name in AS_STORED else tf.cast(variable, context.dtype)
