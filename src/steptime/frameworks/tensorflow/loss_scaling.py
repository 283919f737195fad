"""Loss scaling for fp16, inside the step.

It keeps small gradients above zero, and a step that overflows does not move the weights. The
constants are those of PyTorch's `GradScaler`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from steptime.frameworks.tensorflow.optimizer import MakeVariable

FIRST = 2.0**16
GROWTH = 2.0
BACKOFF = 0.5
PATIENCE = 2000  # finite steps before the scale grows


class LossScaling:
    def __init__(self, make_variable: MakeVariable) -> None:
        self.scale = make_variable(np.float32(FIRST))
        self.finite_steps = make_variable(np.int32(0))  # since the scale last changed

    def update_if_finite(
        self, gradients: list[Any], update: Callable[[list[Any]], list[Any]]
    ) -> list[Any]:
        """Move the weights if all gradients of the scaled loss are finite. Update the scale."""
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        finite = tf.reduce_all(
            [tf.reduce_all(tf.math.is_finite(gradient)) for gradient in gradients]
        )
        scale = tf.convert_to_tensor(self.scale)

        def move() -> Any:
            return _after(update([gradient / scale for gradient in gradients]))

        moved = tf.cond(finite, move, lambda: _after([]))
        # In a graph the scale must not change before the weights have moved.
        with tf.control_dependencies([] if tf.executing_eagerly() else [moved]):
            return [moved, *self._update_scale(finite, scale)]

    def _update_scale(self, finite: Any, scale: Any) -> list[Any]:
        finite_steps = tf.where(finite, tf.convert_to_tensor(self.finite_steps) + 1, 0)
        grows = finite_steps >= PATIENCE
        factor = tf.where(finite, tf.where(grows, GROWTH, 1.0), BACKOFF)
        return [
            self.scale.assign(scale * factor, read_value=False),
            self.finite_steps.assign(tf.where(grows, 0, finite_steps), read_value=False),
        ]


def _after(operations: list[Any]) -> Any:
    """A tensor that exists after these operations ran: both branches of a condition must return
    one."""
    with tf.control_dependencies([operation for operation in operations if operation is not None]):
        return tf.constant(0)
