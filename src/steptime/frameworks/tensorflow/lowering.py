"""A graph as one function of variables and batch, which TensorFlow runs as it comes or traces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from steptime.core.errors import Unsupported
from steptime.frameworks.tensorflow import layout
from steptime.frameworks.tensorflow.context import Array, Walk
from steptime.frameworks.tensorflow.ops import AS_STORED, KINDS
from steptime.graph import Graph, Layer

Lowered = Callable[[dict[str, Any], Array, Walk], Array]


def lower_graph(graph: Graph) -> Lowered:
    """From all variables by canonical name and the stored batch to the output in logical order."""
    layers = [layer for layer in graph if layer.inputs]
    for layer in layers:
        if layer.kind.name not in KINDS:
            raise Unsupported(
                f"{graph.name}: TensorFlow has no lowering of {layer.kind.name!r} (layer {layer.name!r})."
            )
    parts = {
        layer.name: [(name.rpartition(".")[2], name) for name in layer.weights] for layer in layers
    }

    def forward(variables: dict[str, Any], x: Array, walk: Walk) -> Array:
        values = {graph.input.name: x}
        for layer in layers:
            own = {part: _ready(layer, variables[name], walk) for part, name in parts[layer.name]}
            inputs = [values[name] for name in layer.inputs]
            values[layer.name] = KINDS[layer.kind.name](layer, own, walk, *inputs)
        return layout.logical(values[graph.output])

    return forward


def _ready(layer: Layer, variable: Any, walk: Walk) -> Any:
    """In the precision of the activations."""
    return variable if layer.kind.name in AS_STORED else tf.cast(variable, walk.dtype)
