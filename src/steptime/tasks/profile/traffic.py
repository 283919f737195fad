"""The fewest bytes that a step must move, from the shapes alone, for the roofline."""

from __future__ import annotations

from math import prod

from steptime.core.case import Case
from steptime.graph import Work

ITEM_BYTES = {"fp64": 8, "fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1}
# Of each trainable weight, in fp32: the gradient and the weight are read, the weight is written;
# an optimizer's state is read and written.
UPDATE_MOVES = {"sgd": 3, "momentum": 5, "adam": 7}


def least_bytes(work: Work, case: Case) -> int:
    """The backward pass reads the inputs, the weights and the output's gradient, and writes the
    gradients of inputs and weights: the forward pass's bytes again, and once more without the
    outputs."""
    graph = work.graph
    item = ITEM_BYTES[case.precision]
    forward = graph.forward_bytes(case.batch_size, item)
    if case.phase != "training":
        return forward
    computed = [layer for layer in graph.layers if layer.inputs]
    outputs = sum(case.batch_size * item * prod(layer.shape) for layer in computed)
    update = 4 * UPDATE_MOVES[work.optimizer.algorithm] * graph.trainable_parameters
    return forward + 2 * forward - outputs + update
