"""Loss scaling for fp16, inside the step: small gradients stay above zero, and a step that overflows does not move the
weights. Same numbers as PyTorch's `GradScaler`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from steptime.frameworks.tensorflow.optimizer import Make

FIRST, GROWTH, BACKOFF, PATIENCE = 2.0**16, 2.0, 0.5, 2000


class Scaling:
    def __init__(self, make: Make) -> None:
        self.scale = make(np.float32(FIRST))
        self.good = make(np.int32(0))  # steps since the scale last changed

    def guarded(self, gradients: list[Any], update: Callable[[list[Any]], list[Any]]) -> list[Any]:
        """Moves the weights if all gradients, which are of the scaled loss, are finite; then follows with the scale."""
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        finite = tf.reduce_all(
            [tf.reduce_all(tf.math.is_finite(gradient)) for gradient in gradients]
        )
        scale = tf.convert_to_tensor(self.scale)

        def move() -> Any:
            return _one(
                [operation for operation in update([gradient / scale for gradient in gradients])]
            )

        moved = tf.cond(finite, move, lambda: _one([]))
        with tf.control_dependencies([] if tf.executing_eagerly() else [moved]):
            return [moved, *self._follow(finite, scale)]

    def _follow(self, finite: Any, scale: Any) -> list[Any]:
        good = tf.where(finite, tf.convert_to_tensor(self.good) + 1, 0)
        grows = good >= PATIENCE
        factor = tf.where(finite, tf.where(grows, GROWTH, 1.0), BACKOFF)
        return [
            self.scale.assign(scale * factor, read_value=False),
            self.good.assign(tf.where(grows, 0, good), read_value=False),
        ]


def _one(operations: list[Any]) -> Any:
    """A tensor that is there when they are done: what both ways of a condition must return."""
    with tf.control_dependencies([operation for operation in operations if operation is not None]):
        return tf.constant(0)
