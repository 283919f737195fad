"""fp8 in JAX: dense layers multiply in e4m3 with one scale per tensor, the rest stays bf16."""

from __future__ import annotations

from collections import Counter
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from steptime.core.case import Case
from steptime.core.errors import Unsupported
from steptime.frameworks.jax.context import Array
from steptime.frameworks.jax.program import JaxProgram
from steptime.graph import Graph, Work

FP8 = jnp.float8_e4m3fn
LARGEST = float(jnp.finfo(FP8).max)
SMALLEST = 1e-12  # instead of the largest value of a tensor that is all zeros
TILE = 16  # the matrix units work on tiles of this size
SCALING = {
    "format": "e4m3fn",
    "weights": "static, per tensor",
    "activations": "dynamic, per tensor",
}


class Fp8Program(JaxProgram):
    """Weights are scaled once, when they are loaded. Activations are scaled in each step, by their
    largest value."""

    def __init__(self, work: Work, case: Case) -> None:
        self.fp8_layers, self.bf16_layers = choose_layers(work.graph)
        if not self.fp8_layers:
            raise Unsupported(
                f"{work.graph.name} has no dense layer in multiples of {TILE}, "
                "so nothing would be fp8."
            )
        self.exact_weights: dict[str, Any] = {}
        super().__init__(work, case)

    def facts(self) -> dict[str, Any]:
        graph = self.work.graph
        fp8_flops = sum(graph.layer_flops(graph[name])[0] for name in self.fp8_layers)
        facts = super().facts()
        facts["fp8"] = SCALING
        facts["fp8_layers"] = self.fp8_layers
        facts["bf16_dense_layers"] = self.bf16_layers
        facts["fp8_flops_share"] = fp8_flops / graph.forward_flops
        return facts

    def weights(self) -> dict[str, Any]:
        return {name: array.copy() for name, array in self.exact_weights.items()}

    def _place_weights(self, weights: dict[str, Any]) -> tuple[dict[str, Array], dict[str, Array]]:
        self.exact_weights = {name: weights[name] for name in self.work.graph.weights}
        trainable, statistics = super()._place_weights(weights)
        for layer_name in self.fp8_layers:
            name = f"{layer_name}.weight"
            trainable[name] = Fp8Weight.from_exact(self._put(weights[name]))
        return trainable, statistics


@jax.tree_util.register_pytree_node_class
class Fp8Weight:
    """Replaces the weight of a dense layer: `x @ weight` multiplies in fp8."""

    def __init__(self, values: Array, scale: Array) -> None:
        self.values = values  # (outputs, inputs), the order that matrix units of GPUs need
        self.scale = scale

    @classmethod
    def from_exact(cls, weight: Array) -> Fp8Weight:
        return cls(*to_fp8(weight))

    def astype(self, dtype: Any) -> Fp8Weight:
        # `lower_graph` casts the weights of a layer; this one keeps its format.
        return self

    def __rmatmul__(self, x: Array) -> Array:
        rows, scale = to_fp8(x)
        # Both factors have the contracted axis last.
        contracted = (((x.ndim - 1,), (1,)), ((), ()))
        # Sums in fp32: the products themselves are in fp8.
        product = lax.dot_general(rows, self.values, contracted, preferred_element_type=jnp.float32)
        return (product * (scale * self.scale)).astype(x.dtype)

    def tree_flatten(self) -> tuple[tuple[Array, Array], None]:
        return (self.values, self.scale), None

    @classmethod
    def tree_unflatten(cls, _: None, children: tuple[Array, Array]) -> Fp8Weight:
        return cls(*children)


def to_fp8(x: Array) -> tuple[Array, Array]:
    """Values that fill the range of the format, and the scale to multiply them by."""
    x = x.astype(jnp.float32)
    scale = jnp.maximum(jnp.abs(x).max(), SMALLEST) / LARGEST
    values = jnp.clip(x / scale, -LARGEST, LARGEST).astype(FP8)
    return values, scale


def choose_layers(graph: Graph) -> tuple[list[str], dict[str, str]]:
    """The dense layers that multiply in fp8, and for each other one the reason why not."""
    users = Counter(name for layer in graph for name in layer.weights)
    chosen: list[str] = []
    reasons: dict[str, str] = {}
    for layer in graph:
        if layer.op.name != "dense":
            continue
        inputs = layer.input_shapes[0][-1]
        outputs = layer.shape[-1]
        if inputs % TILE or outputs % TILE:
            reasons[layer.name] = f"{inputs} × {outputs} is not in multiples of {TILE}"
        # A tied weight is also needed in the precision of the other layer.
        elif users[f"{layer.name}.weight"] > 1:
            reasons[layer.name] = "its weight is tied to another layer"
        else:
            chosen.append(layer.name)
    return chosen, reasons
