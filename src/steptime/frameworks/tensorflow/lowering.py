"""A graph as one function of variables and batch, which TensorFlow runs directly or traces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from steptime.core.errors import Unsupported
from steptime.frameworks.tensorflow import layout
from steptime.frameworks.tensorflow.context import Array, LoweringContext, Weights
from steptime.frameworks.tensorflow.ops import OPS, STORED_PRECISION
from steptime.graph import Graph

Lowered = Callable[[dict[str, Any], Array, LoweringContext], Array]


def lower_graph(graph: Graph) -> Lowered:
    """The function takes all variables by canonical name and the stored batch. It returns the
    output in logical order."""
    layers = [layer for layer in graph if layer.inputs]
    # Computed once: in mode `eager` the function runs in every step.
    weight_names: dict[str, dict[str, str]] = {}
    for layer in layers:
        if layer.op.name not in OPS:
            raise Unsupported(
                f"{graph.name}: TensorFlow has no lowering of {layer.op.name!r} "
                f"(layer {layer.name!r})."
            )
        weight_names[layer.name] = {name.rpartition(".")[2]: name for name in layer.weights}

    def forward(variables: dict[str, Any], x: Array, context: LoweringContext) -> Array:
        values = {graph.input.name: x}
        for layer in layers:
            weights: Weights = {}
            for key, name in weight_names[layer.name].items():
                weights[key] = _cast(variables[name], layer.op.name, context)
            inputs = [values[name] for name in layer.value_inputs]
            values[layer.name] = OPS[layer.op.name](layer, weights, context, *inputs)
        return layout.to_logical(values[graph.output])

    return forward


def _cast(variable: Any, op: str, context: LoweringContext) -> Any:
    """To the precision of the activations."""
    return variable if op in STORED_PRECISION else tf.cast(variable, context.dtype)
