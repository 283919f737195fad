"""The forward pass through a graph, the loss, and the backward pass to all trainable weights."""

from __future__ import annotations

import numpy as np

from steptime.frameworks.numpy.context import Array, Backward, LoweringContext, Weights
from steptime.frameworks.numpy.ops import OPS
from steptime.graph import Graph, Layer


def forward(
    graph: Graph, weights: dict[str, Array], x: Array, context: LoweringContext
) -> tuple[Array, dict[str, Backward]]:
    """The output, and the backward function of each layer."""
    if context.rounding is not None:
        context.rounding.begin_pass()
    values = {graph.input.name: x}
    backwards: dict[str, Backward] = {}
    for layer in graph:
        if not layer.inputs:
            continue
        compute = OPS[layer.op.name]
        if context.rounding is not None:
            compute = context.rounding.wrap(compute)
        inputs = [values[name] for name in layer.inputs]
        output, backward_function = compute(layer, _by_role(layer, weights), context, *inputs)
        values[layer.name] = output
        backwards[layer.name] = backward_function
    return values[graph.output], backwards


def backward(graph: Graph, backwards: dict[str, Backward], gradient: Array) -> dict[str, Array]:
    """The gradient of every trainable weight, by canonical name."""
    of_outputs = {graph.output: gradient}
    of_weights: dict[str, Array] = {}
    for layer in reversed(graph.layers):
        learns = layer.name in graph.with_input_gradient or layer.weights
        # A layer without a gradient is used for its weights only.
        if not learns or layer.name not in of_outputs:
            continue
        of_inputs, by_role = backwards[layer.name](of_outputs.pop(layer.name))
        for name, weight in layer.weights.items():
            if weight.trainable:
                # A tied weight gets the sum of what its users contribute.
                _add_to(of_weights, name, by_role[_role(name)])
        for name, value in zip(layer.inputs, of_inputs, strict=True):
            if value is not None:
                _add_to(of_outputs, name, value)
    return of_weights


def loss(output: Array, target: Array) -> tuple[float, Array]:
    """Mean over batch and positions of −log softmax(output)[target], and its gradient."""
    # Subtracting the maximum leaves the softmax as it is, and nothing overflows.
    shifted = output - output.max(axis=-1, keepdims=True)
    logarithms = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    indices = target[..., None]
    of_target = np.take_along_axis(logarithms, indices, axis=-1)
    gradient = np.exp(logarithms)
    np.put_along_axis(gradient, indices, np.exp(of_target) - 1, axis=-1)
    return float(-of_target.mean()), gradient / target.size


def _add_to(sums: dict[str, Array], name: str, value: Array) -> None:
    sums[name] = sums[name] + value if name in sums else value


def _by_role(layer: Layer, weights: dict[str, Array]) -> Weights:
    return {_role(name): weights[name] for name in layer.weights}


def _role(name: str) -> str:
    """'weight' of 'conv1.weight'."""
    return name.rpartition(".")[2]
