"""What a layer's function gets besides its weights and inputs on one context through the graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from steptime.frameworks.jax.layout import Layout

Array = Any
Weights = dict[str, Array]  # of one layer, by part


@dataclass
class LoweringContext:
    """Lives only while JAX traces: what is compiled is pure."""

    layout: Layout
    dtype: Any  # of activations
    training: bool
    key: Array | None = None  # of random numbers; None: dropout is off
    statistics: dict[str, Array] = field(
        default_factory=dict
    )  # new moving averages, by canonical name

    def draw(self) -> Array:
        """A key of its own for every layer that needs one; the rest is for the next step."""
        self.key, own = jax.random.split(self.key)
        return own

    def shifted(self, y: Array, bias: Array) -> Array:
        """y + bias. In training at least in fp32: on the CPU, XLA sums the bias's gradient in the type it was added in,
        and bf16 stops growing after a few hundred summands."""
        return (wide(y) + wide(bias)).astype(y.dtype) if self.training else y + bias


def wide(x: Array) -> Array:
    """At least fp32: sums of many low-precision numbers would lose what is small."""
    return x.astype(jnp.promote_types(x.dtype, jnp.float32))
