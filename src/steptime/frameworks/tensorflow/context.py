"""What the function of a layer gets besides its weights and inputs, while the graph is lowered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

Array = Any
Weights = dict[str, Array]  # the weights of one layer, by the last part of their names


@dataclass
class LoweringContext:
    dtype: Any  # of activations
    training: bool
    xla: bool
    seed: int = 0
    # Number of steps so far, which changes the random numbers. None: dropout is off.
    step_count: Array | None = None
    draws: int = 0
    # New moving averages, by canonical name.
    statistics: dict[str, Array] = field(default_factory=dict)

    @property
    def native_convolutions(self) -> bool:
        """Whether groups and dilation are part of the convolution. Outside XLA, that operation has
        no gradient on the CPU."""
        return self.xla or not self.training

    def draw_uniform(self, shape: Any) -> Array:
        """Random numbers from 0 to 1, different for every layer, step and seed.

        All modes draw the same numbers, except xla, which has another generator."""
        self.draws += 1
        stream = tf.constant((self.seed << 20) + self.draws, tf.int64)
        return tf.random.stateless_uniform(shape, tf.stack([self.step_count, stream]))


def add_bias(y: Array, bias: Array) -> Array:
    """y + bias. `bias_add` is fused, but on the CPU it sums its gradient in bf16, and such a sum
    stops growing after a few hundred summands."""
    if y.dtype in (tf.bfloat16, tf.float16):
        return y + bias
    return tf.nn.bias_add(y, bias)


def at_least_fp32(x: Array) -> Array:
    """Sums of many low-precision numbers would lose the small ones."""
    return tf.cast(x, tf.float32) if x.dtype in (tf.bfloat16, tf.float16) else x
