"""fp8 in JAX: dense layers multiply in e4m3 with one scale per tensor, everything else stays bf16."""

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
SMALLEST = 1e-12  # of a tensor that is all zeros
TILE = 16  # what the matrix units take at once


class Fp8Program(JaxProgram):
    """Weights are scaled once, when they are loaded; what meets them by its own largest value, in each step."""

    def __init__(self, work: Work, case: Case) -> None:
        self.chosen, self.left = choose(work.graph)
        if not self.chosen:
            raise Unsupported(
                f"{work.graph.name} has no dense layer in multiples of {TILE}, so nothing would be fp8."
            )
        self.exact: dict[str, Any] = {}
        super().__init__(work, case)

    def facts(self) -> dict[str, Any]:
        graph = self.work.graph
        share = sum(graph.layer_flops(graph[name])[0] for name in self.chosen) / graph.forward_flops
        scaling = {
            "format": "e4m3fn",
            "weights": "static, per tensor",
            "activations": "dynamic, per tensor",
        }
        layers = {
            "fp8_layers": self.chosen,
            "bf16_dense_layers": self.left,
            "fp8_flops_share": share,
        }
        return {**super().facts(), "fp8": scaling, **layers}

    def weights(self) -> dict[str, Any]:
        return {name: array.copy() for name, array in self.exact.items()}

    def _placed(self, weights: dict[str, Any]) -> tuple[dict[str, Array], dict[str, Array]]:
        self.exact = {name: weights[name] for name in self.work.graph.weights}
        trained, rest = super()._placed(weights)
        scaled = {
            f"{name}.weight": Fp8Weight.of(self._put(weights[f"{name}.weight"]))
            for name in self.chosen
        }
        return {**trained, **scaled}, rest


@jax.tree_util.register_pytree_node_class
class Fp8Weight:
    """Stands where a dense layer's weight stands, and multiplies what meets it in fp8."""

    def __init__(self, values: Array, scale: Array) -> None:
        self.values, self.scale = (
            values,
            scale,
        )  # (outputs, inputs): what the matrix units of GPUs want

    @classmethod
    def of(cls, weight: Array) -> Fp8Weight:
        return cls(*in_fp8(weight))

    def astype(self, dtype: Any) -> Fp8Weight:
        return self

    def __rmatmul__(self, x: Array) -> Array:
        rows, scale = in_fp8(x)
        contracted = (((x.ndim - 1,), (1,)), ((), ()))
        found = lax.dot_general(rows, self.values, contracted, preferred_element_type=jnp.float32)
        return (found * (scale * self.scale)).astype(x.dtype)

    def tree_flatten(self) -> tuple[tuple[Array, Array], None]:
        return (self.values, self.scale), None

    @classmethod
    def tree_unflatten(cls, _: None, parts: tuple[Array, Array]) -> Fp8Weight:
        return cls(*parts)


def in_fp8(x: Array) -> tuple[Array, Array]:
    """Numbers that fill the format's range, and what to multiply them by."""
    x = x.astype(jnp.float32)
    scale = jnp.maximum(jnp.abs(x).max(), SMALLEST) / LARGEST
    return jnp.clip(x / scale, -LARGEST, LARGEST).astype(FP8), scale


def choose(graph: Graph) -> tuple[list[str], dict[str, str]]:
    """Dense layers that multiply in fp8, and why others do not."""
    users = Counter(name for layer in graph for name in layer.weights)
    chosen, left = [], {}
    for layer in (layer for layer in graph if layer.op.name == "dense"):
        inputs, outputs = layer.input_shapes[0][-1], layer.shape[-1]
        if inputs % TILE or outputs % TILE:
            left[layer.name] = f"{inputs} × {outputs} is not in multiples of {TILE}"
        elif users[f"{layer.name}.weight"] > 1:
            left[layer.name] = "its weight is lent to another layer"
        else:
            chosen.append(layer.name)
    return chosen, left
