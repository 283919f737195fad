"""Optimisers with exactly the semantics of `graph.optimizer`: one operation for each weight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from steptime.core.errors import Unsupported
from steptime.graph import Optimizer

MakeVariable = Callable[[Any], Any]  # makes a variable with this initial value
# Variables that an algorithm keeps for each weight.
SLOTS = {"sgd": 0, "momentum": 1, "adam": 2}


def optimizer_for(
    spec: Optimizer, weights: list[Any], make_variable: MakeVariable
) -> VariableOptimizer:
    if spec.algorithm not in SLOTS:
        raise Unsupported(
            f"TensorFlow's folder has no optimiser {spec.algorithm!r}; "
            "it has sgd, momentum and adam."
        )
    return VariableOptimizer(spec, weights, make_variable)


class VariableOptimizer:
    """Keeps the state of the optimiser. `update` returns operations, which only a session has to
    run: in the other modes they already ran."""

    def __init__(self, spec: Optimizer, weights: list[Any], make_variable: MakeVariable) -> None:
        self.spec = spec
        self.weights = weights
        # A plain Python number would become fp32. Without weights nothing moves.
        self.number = weights[0].dtype.as_numpy_dtype if weights else np.float32
        slot_count = SLOTS[spec.algorithm]
        self.slots = [
            [make_variable(_zeros(weight)) for _ in range(slot_count)] for weight in weights
        ]
        self.step_count = make_variable(np.int64(0)) if spec.algorithm == "adam" else None

    def update(self, gradients: list[Any]) -> list[Any]:
        apply = getattr(self, f"_{self.spec.algorithm}")
        settings = () if self.step_count is None else self._bias_correction()
        operations = []
        for weight, slots, gradient in zip(self.weights, self.slots, gradients, strict=True):
            operations.extend(self._move(apply, weight, slots, gradient, settings))
        return operations

    def _move(
        self, apply: Any, weight: Any, slots: list[Any], gradient: Any, settings: Any
    ) -> list[Any]:
        decay = self.spec.weight_decay
        if not decay:
            return [apply(weight, slots, gradient, *settings)]
        gradient = tf.convert_to_tensor(gradient)
        if not self.spec.decoupled:
            return [apply(weight, slots, gradient + decay * weight, *settings)]
        # A session orders nothing by itself: the network must read the weight before it shrinks.
        with tf.control_dependencies([gradient]):
            shrunk = weight.assign_sub(self.spec.rate * decay * weight, read_value=False)
        with tf.control_dependencies([] if tf.executing_eagerly() else [shrunk]):
            return [shrunk, apply(weight, slots, gradient, *settings)]

    def _sgd(self, weight: Any, slots: list[Any], gradient: Any) -> Any:
        # The gradient of an embedding has only the used rows; the others do not move.
        if isinstance(gradient, tf.IndexedSlices):
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
        """Powers of 0 switch off TensorFlow's bias correction. It does not apply to epsilon, which
        makes it another rule."""
        first_beta, second_beta = map(self.number, self.spec.betas)
        no_power = self.number(0)
        return tf.raw_ops.ResourceApplyAdam(
            var=weight.handle,
            m=slots[0].handle,
            v=slots[1].handle,
            beta1_power=no_power,
            beta2_power=no_power,
            lr=rate,
            beta1=first_beta,
            beta2=second_beta,
            epsilon=epsilon,
            grad=tf.convert_to_tensor(gradient),
        )

    def _bias_correction(self) -> tuple[Any, Any]:
        """The rate and epsilon that include the correction of both moments.

        With c = 1 − βᵗ they are rate · √c₂ / c₁ and epsilon · √c₂. They are computed in fp64 from
        the betas as the operation rounds them: 1 − 0.999 in fp32 is wrong in the fifth digit."""
        assert self.step_count is not None
        steps = tf.cast(self.step_count.assign_add(1), tf.float64)
        first_beta, second_beta = (float(self.number(beta)) for beta in self.spec.betas)
        root = tf.sqrt(1 - tf.constant(second_beta, tf.float64) ** steps)
        rate = self.spec.rate * root / (1 - tf.constant(first_beta, tf.float64) ** steps)
        return tf.cast(rate, self.number), tf.cast(self.spec.epsilon * root, self.number)


def _zeros(weight: Any) -> Any:
    return np.zeros(weight.shape, weight.dtype.as_numpy_dtype)
