"""What is computed, one function per phase, from variables and batch, in any mode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from steptime.frameworks.tensorflow.context import Array, LoweringContext, at_least_fp32
from steptime.frameworks.tensorflow.loss_scaling import LossScaling
from steptime.frameworks.tensorflow.lowering import Lowered
from steptime.frameworks.tensorflow.optimizer import VariableOptimizer

Updates = list[Any]  # operations that change variables; only a session has to run them


@dataclass(frozen=True)
class Steps:
    network: Lowered
    variables: dict[str, Any]  # all of them, by canonical name
    context: LoweringContext  # each pass starts from these settings
    # The variable that counts steps with random numbers. None: nothing is drawn.
    step_count: Any = None
    optimizer: VariableOptimizer | None = None
    loss_scaling: LossScaling | None = None
    # Averages gradients over the ranks that share a step.
    average: Callable[[list[Array]], list[Array]] = lambda gradients: gradients

    def infer(self, values: Array) -> Array:
        return self.network(self.variables, values, self._begin(training=False))

    def forward(self, values: Array, target: Array) -> tuple[Array, Updates]:
        # In mode `eager` the tape keeps what a backward pass would need.
        with tf.GradientTape():
            loss, context = self._loss(values, target, self._count_step())
        return loss, self._update_statistics(context)

    def train(self, values: Array, target: Array) -> tuple[Array, Updates]:
        assert self.optimizer is not None
        step_count = self._count_step()

        def compute() -> tuple[Array, tuple[Array, LoweringContext]]:
            loss, context = self._loss(values, target, step_count)
            if self.loss_scaling is None:
                return loss, (loss, context)
            return loss * self.loss_scaling.scale, (loss, context)

        gradients, (loss, context) = differentiate(compute, self.optimizer.weights)
        gradients = self.average(gradients)
        update = self.optimizer.update
        if self.loss_scaling is None:
            updates = update(gradients)
        else:
            updates = self.loss_scaling.update_if_finite(gradients, update)
        return loss, [*updates, *self._update_statistics(context)]

    def gradients(
        self, values: Array, target: Array, scale: Array
    ) -> tuple[Array, dict[str, Array]]:
        """The loss and the gradients of the scaled loss, without dropout."""

        def compute() -> tuple[Array, Array]:
            loss, _ = self._loss(values, target, None)
            return loss * tf.cast(scale, loss.dtype), loss

        trainable = {}
        for name, variable in self.variables.items():
            if variable.trainable:
                trainable[name] = variable
        gradients, loss = differentiate(compute, list(trainable.values()))
        tensors = [tf.convert_to_tensor(gradient) for gradient in gradients]
        return loss, dict(zip(trainable, tensors, strict=True))

    def _loss(
        self, values: Array, target: Array, step_count: Array | None
    ) -> tuple[Array, LoweringContext]:
        context = self._begin(training=True, step_count=step_count)
        output = at_least_fp32(self.network(self.variables, values, context))
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(target, output)
        return tf.reduce_mean(losses), context

    def _begin(self, *, training: bool, step_count: Array | None = None) -> LoweringContext:
        settings = self.context
        return LoweringContext(settings.dtype, training, settings.xla, settings.seed, step_count)

    def _count_step(self) -> Array | None:
        return None if self.step_count is None else self.step_count.assign_add(1)

    def _update_statistics(self, context: LoweringContext) -> Updates:
        updates = []
        for name, value in context.statistics.items():
            variable = self.variables[name]
            updates.append(variable.assign(tf.cast(value, variable.dtype), read_value=False))
        return updates


def differentiate(
    compute: Callable[[], tuple[Array, Any]], weights: list[Any]
) -> tuple[list[Array], Any]:
    """The gradients of the first result of `compute`, and the second result."""
    # The graph of a session needs no tape.
    if not tf.executing_eagerly() and not tf.inside_function():
        value, rest = compute()
        return tf.compat.v1.gradients(value, weights), rest
    with tf.GradientTape() as tape:
        value, rest = compute()
    return tape.gradient(value, weights), rest
