"""What a network costs, by closed form: parameters, FLOPs, and bytes that must be moved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from steptime.graph.layer import Layer
from steptime.graph.op import Weight


def count_trainable(weights: Iterable[Weight]) -> int:
    return sum(weight.size for weight in weights if weight.trainable)


def count_stored(weights: Iterable[Weight]) -> int:
    """Trainable parameters, and the rest of what a saved model holds (moving statistics)."""
    return sum(weight.size for weight in weights)


def layers_with_input_gradient(layers: Sequence[Layer]) -> frozenset[str]:
    """Names of the layers with a trainable weight somewhere before them.

    A backward pass computes the gradient of their inputs; before the first weight there is none."""
    trains: dict[str, bool] = {}
    names: set[str] = set()
    for layer in layers:
        if any(name in names or trains[name] for name in layer.inputs):
            names.add(layer.name)
        # Recorded after the test above, because a layer's own weights come after its input.
        trains[layer.name] = any(weight.trainable for weight in layer.weights.values())
    return frozenset(names)


def layer_flops(layer: Layer, *, input_gradient: bool) -> tuple[int, int]:
    """Forward and backward FLOPs of one sample."""
    flops = layer.op.flops(*layer.input_shapes)
    backward = flops.weight_gradient
    if input_gradient:
        backward += flops.input_gradient
    return flops.forward, backward


def layer_bytes(layer: Layer, batch: int, item_bytes: int) -> int:
    """The least that a forward pass must move: inputs and weights read once, outputs written once.

    Of an input that only ties weights, no value is read."""
    values = batch * prod(layer.shape)
    for index, shape in enumerate(layer.input_shapes):
        if index != layer.op.tied_input:
            values += batch * prod(shape)
    # An embedding reads only some rows of its weight, so the op says how many values it reads.
    weights = layer.op.weights_read(batch, *layer.input_shapes)
    return item_bytes * (values + weights)
