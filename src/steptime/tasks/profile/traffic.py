"""Bytes that a step must move at the least, from the shapes alone: what its arithmetic is set against in a roofline."""

from __future__ import annotations

from math import prod

from steptime.core.case import Case
from steptime.graph import Work

ITEM_BYTES = {"fp64": 8, "fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1}
# Of each trainable weight, in fp32: gradient and weight read, weight written; what an optimiser remembers, both.
UPDATE_MOVES = {"sgd": 3, "momentum": 5, "adam": 7}


def least_bytes(work: Work, case: Case) -> int:
    """The way back reads what came in, the weights and the output's gradient, and writes the gradients of the first
    two: the forward pass's bytes once more, and again without the outputs."""
    graph, item = work.graph, ITEM_BYTES[case.precision]
    forward = graph.forward_bytes(case.batch_size, item)
    if case.phase != "training":
        return forward
    outputs = sum(
        case.batch_size * item * prod(layer.shape) for layer in graph.layers if layer.inputs
    )
    update = 4 * UPDATE_MOVES[work.optimizer.algorithm] * graph.trainable_parameters
    return forward + 2 * forward - outputs + update
