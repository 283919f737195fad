"""The matrix product that dense and recurrent layers share."""

from __future__ import annotations

import tensorflow as tf

from steptime.frameworks.tensorflow.context import Array


def multiply_rows(x: Array, weight: Array, *, transpose: bool = False) -> Array:
    """x · weight over the last axis. `transpose`: the weight has its units first."""
    if len(x.shape) == 2:
        return tf.matmul(x, weight, transpose_b=transpose)
    # The rows of all samples at once: one large product is faster than many small ones.
    rows = tf.matmul(tf.reshape(x, (-1, x.shape[-1])), weight, transpose_b=transpose)
    return tf.reshape(rows, (-1, *x.shape[1:-1], rows.shape[-1]))
