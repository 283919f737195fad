"""What a layer's function gets besides its weights and inputs on one context through the graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

Array = Any


@dataclass
class LoweringContext:
    dtype: Any  # of activations
    training: bool
    xla: bool
    seed: int = 0
    count: Array | None = None  # of steps so far, moves the random numbers on; None: dropout is off
    drawn: int = 0
    statistics: dict[str, Array] = field(
        default_factory=dict
    )  # new moving averages, by canonical name

    @property
    def native(self) -> bool:
        """Convolutions with groups or dilation as one operation: outside XLA it has no gradient on the CPU."""
        return self.xla or not self.training

    def draw(self, shape: Any) -> Array:
        """Uniform from 0 to 1, other numbers for every layer, step and seed, and the same ones in every mode but xla,
        which has a generator of its own."""
        self.drawn += 1
        key = tf.stack([self.count, tf.constant((self.seed << 20) + self.drawn, tf.int64)])
        return tf.random.stateless_uniform(shape, key)


def shifted(y: Array, bias: Array) -> Array:
    """y + bias. `bias_add` is fused, but on the CPU its gradient in bf16 stops growing after a few hundred summands."""
    return y + bias if y.dtype in (tf.bfloat16, tf.float16) else tf.nn.bias_add(y, bias)


def wide(x: Array) -> Array:
    """At least fp32: sums of many low-precision numbers would lose what is small."""
    return tf.cast(x, tf.float32) if x.dtype in (tf.bfloat16, tf.float16) else x
