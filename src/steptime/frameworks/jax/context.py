"""What the function of a layer gets besides its weights and inputs, while the graph is lowered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from steptime.frameworks.jax.layout import Layout

Array = Any
Weights = dict[str, Array]  # the weights of one layer, by the last part of their names


@dataclass
class LoweringContext:
    """Lives only while JAX traces: the compiled function is pure."""

    layout: Layout
    dtype: Any  # of activations
    training: bool
    # Key of the random numbers. None: dropout is off.
    key: Array | None = None
    # The device has cuDNN's fused attention.
    has_cudnn: bool = False
    # New moving averages, by canonical name.
    statistics: dict[str, Array] = field(default_factory=dict)

    def draw_key(self) -> Array:
        """A key for one layer; what remains is for the next layer or step."""
        self.key, layer_key = jax.random.split(self.key)
        return layer_key

    def add_bias(self, y: Array, bias: Array) -> Array:
        """y + bias; in training at least in fp32.

        On the CPU, XLA sums the gradient of the bias in the type of the addition, and a sum in bf16
        stops growing after a few hundred summands."""
        if self.training:
            return (at_least_fp32(y) + at_least_fp32(bias)).astype(y.dtype)
        return y + bias


def at_least_fp32(x: Array) -> Array:
    """Sums of many low-precision numbers would lose the small ones."""
    return x.astype(jnp.promote_types(x.dtype, jnp.float32))
