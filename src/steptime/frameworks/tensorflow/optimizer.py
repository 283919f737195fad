"""Optimisers with exactly the semantics of `graph.optimizer`, by TensorFlow's own operations: one for each weight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from steptime.core.errors import Unsupported
from steptime.graph import Optimizer

Make = Callable[[Any], Any]  # a variable that starts as this array
SLOTS = {"sgd": 0, "momentum": 1, "adam": 2}


class Rule:
    """Keeps what the rule remembers. `update` returns operations, which only a session needs: elsewhere they ran."""

    def __init__(self, spec: Optimizer, weights: list[Any], make: Make) -> None:
        if spec.algorithm not in SLOTS:
            raise Unsupported(
                f"TensorFlow's folder has no optimiser {spec.algorithm!r}; it has sgd, momentum and adam."
            )
        self.spec, self.weights = spec, weights
        # A plain Python number would become fp32. Without weights nothing moves.
        self.number = weights[0].dtype.as_numpy_dtype if weights else np.float32
        self.slots = [
            [make(_zeros(weight)) for _ in range(SLOTS[spec.algorithm])] for weight in weights
        ]
        self.count = make(np.int64(0)) if spec.algorithm == "adam" else None

    def update(self, gradients: list[Any]) -> list[Any]:
        apply = getattr(self, f"_{self.spec.algorithm}")
        settings = self._corrected() if self.count is not None else ()
        return [
            operation
            for weight, slots, gradient in zip(self.weights, self.slots, gradients, strict=True)
            for operation in self._moved(apply, weight, slots, gradient, settings)
        ]

    def _moved(
        self, apply: Any, weight: Any, slots: list[Any], gradient: Any, settings: Any
    ) -> list[Any]:
        decay = self.spec.weight_decay
        if not decay:
            return [apply(weight, slots, gradient, *settings)]
        gradient = tf.convert_to_tensor(gradient)
        if not self.spec.decoupled:
            return [apply(weight, slots, gradient + decay * weight, *settings)]
        with tf.control_dependencies(
            [gradient]
        ):  # a session orders nothing by itself: the network reads the weight first
            shrunk = weight.assign_sub(self.spec.rate * decay * weight, read_value=False)
        with tf.control_dependencies([] if tf.executing_eagerly() else [shrunk]):
            return [shrunk, apply(weight, slots, gradient, *settings)]

    def _sgd(self, weight: Any, slots: list[Any], gradient: Any) -> Any:
        if isinstance(
            gradient, tf.IndexedSlices
        ):  # of the rows of an embedding that were used; the others do not move
            move = self.spec.rate * gradient.values
            return tf.raw_ops.ResourceScatterSub(
                resource=weight.handle, indices=gradient.indices, updates=move
            )
        return tf.raw_ops.ResourceApplyGradientDescent(
            var=weight.handle, alpha=self.number(self.spec.rate), delta=gradient
        )

    def _momentum(self, weight: Any, slots: list[Any], gradient: Any) -> Any:
        return tf.raw_ops.ResourceApplyMomentum(
            var=weight.handle,
            accum=slots[0].handle,
            lr=self.number(self.spec.rate),
            grad=tf.convert_to_tensor(gradient),
            momentum=self.number(self.spec.momentum),
        )

    def _adam(self, weight: Any, slots: list[Any], gradient: Any, rate: Any, epsilon: Any) -> Any:
        """Powers of 0 switch TensorFlow's own correction off, which leaves epsilon as it is and so is another rule."""
        first, second = map(self.number, self.spec.betas)
        none = self.number(0)
        return tf.raw_ops.ResourceApplyAdam(
            var=weight.handle, m=slots[0].handle, v=slots[1].handle, beta1_power=none, beta2_power=none, lr=rate,
            beta1=first, beta2=second, epsilon=epsilon, grad=tf.convert_to_tensor(gradient),
        )  # fmt: skip

    def _corrected(self) -> tuple[Any, Any]:
        """rate · √c₂ / c₁ and epsilon · √c₂ with c = 1 − βᵗ: with both put in, the corrections of m and s come out.

        In fp64, and of the betas as the operation rounds them: 1 − 0.999 in fp32 is wrong in the fifth digit."""
        assert self.count is not None
        time = tf.cast(self.count.assign_add(1), tf.float64)
        first, second = (float(self.number(beta)) for beta in self.spec.betas)
        root = tf.sqrt(1 - tf.constant(second, tf.float64) ** time)
        rate = self.spec.rate * root / (1 - tf.constant(first, tf.float64) ** time)
        return tf.cast(rate, self.number), tf.cast(self.spec.epsilon * root, self.number)


def _zeros(weight: Any) -> Any:
    return np.zeros(weight.shape, weight.dtype.as_numpy_dtype)
