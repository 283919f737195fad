"""What a layer's function gets besides its weights and inputs on one walk through the graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from steptime.frameworks.jax.layout import Layout

Array = Any
Weights = dict[str, Array]  # of one layer, by part


@dataclass
class Walk:
    """Lives only while JAX traces: what is compiled is pure."""

    layout: Layout
    dtype: Any  # of activations
    training: bool
    key: Array | None = None  # of random numbers; None: dropout is off
    statistics: dict[str, Array] = field(default_factory=dict)  # new moving averages, by canonical name

    def draw(self) -> Array:
        """A key of its own for every layer that needs one; the rest is for the next step."""
        self.key, own = jax.random.split(self.key)
        return own


def wide(x: Array) -> Array:
    """At least fp32: sums of many low-precision numbers would lose what is small."""
    return x.astype(jnp.promote_types(x.dtype, jnp.float32))
