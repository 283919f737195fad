"""Walks a graph forward, and back from the loss to the gradient of every trainable weight."""

from __future__ import annotations

import numpy as np

from steptime.frameworks.numpy.context import Array, Back, LoweringContext
from steptime.frameworks.numpy.layers import LAYERS
from steptime.graph import Graph, Layer


def forward(
    graph: Graph, weights: dict[str, Array], x: Array, context: LoweringContext
) -> tuple[Array, dict[str, Back]]:
    """The output, and each layer's way back."""
    if context.rounding is not None:
        context.rounding.begin()
    values, backs = {graph.input.name: x}, {}
    for layer in graph:
        if layer.inputs:
            inputs = [values[name] for name in layer.inputs]
            compute = LAYERS[layer.op.name]
            if context.rounding is not None:
                compute = context.rounding.around(compute)
            values[layer.name], backs[layer.name] = compute(
                layer, _own(layer, weights), context, *inputs
            )
    return values[graph.output], backs


def backward(graph: Graph, backs: dict[str, Back], gradient: Array) -> dict[str, Array]:
    gradients, found = {graph.output: gradient}, dict[str, Array]()
    for layer in reversed(graph.layers):
        if layer.name not in gradients or not (
            layer.name in graph.with_input_gradient or layer.weights
        ):
            continue  # nothing to learn here or before, or only its weights are used
        of_inputs, of_weights = backs[layer.name](gradients.pop(layer.name))
        own = {
            name: of_weights[name.rpartition(".")[2]]
            for name, w in layer.weights.items()
            if w.trainable
        }
        _gather(found, own)  # a lent weight gets what each of its users finds
        for name, value in zip(layer.inputs, of_inputs, strict=True):
            _gather(gradients, {name: value} if value is not None else {})
    return found


def _gather(sums: dict[str, Array], parts: dict[str, Array]) -> None:
    for name, value in parts.items():
        sums[name] = sums[name] + value if name in sums else value


def loss(output: Array, target: Array) -> tuple[float, Array]:
    """Mean over batch and positions of −log softmax(output)[target], and its gradient."""
    shifted = output - output.max(
        axis=-1, keepdims=True
    )  # the softmax is the same and nothing overflows
    logarithms = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    chosen = np.take_along_axis(logarithms, target[..., None], axis=-1)
    gradient = np.exp(logarithms)
    np.put_along_axis(gradient, target[..., None], np.exp(chosen) - 1, axis=-1)
    return float(-chosen.mean()), gradient / target.size


def _own(layer: Layer, weights: dict[str, Array]) -> dict[str, Array]:
    return {name.rpartition(".")[2]: weights[name] for name in layer.weights}
