"""What is computed, one function per phase, from variables and batch. Who runs it, and as what, is not known here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from steptime.frameworks.tensorflow.context import Array, LoweringContext, wide
from steptime.frameworks.tensorflow.lowering import Lowered
from steptime.frameworks.tensorflow.optimizer import Rule
from steptime.frameworks.tensorflow.scaling import Scaling

Updates = list[Any]  # operations that change variables; only a session must be told to run them


@dataclass(frozen=True)
class Steps:
    network: Lowered
    variables: dict[str, Any]  # all of them, by canonical name
    context: LoweringContext  # as it begins
    draws: Any = None  # the count of steps with random numbers; None: nothing is drawn
    rule: Rule | None = None
    scaling: Scaling | None = None
    average: Callable[[list[Array]], list[Array]] = lambda gradients: (
        gradients
    )  # over the ranks that share a step

    def infer(self, values: Array) -> Array:
        return self.network(self.variables, values, self._begin(training=False))

    def forward(self, values: Array, target: Array) -> tuple[Array, Updates]:
        """Under a tape, which keeps what a backward pass would need where there is no graph that tells."""
        with tf.GradientTape():
            loss, context = self._loss(values, target, self._count())
        return loss, self._remember(context)

    def train(self, values: Array, target: Array) -> tuple[Array, Updates]:
        assert self.rule is not None
        count = self._count()

        def compute() -> tuple[Array, tuple[Array, LoweringContext]]:
            loss, context = self._loss(values, target, count)
            return loss if self.scaling is None else loss * self.scaling.scale, (loss, context)

        gradients, (loss, context) = differentiate(compute, self.rule.weights)
        gradients, update = self.average(gradients), self.rule.update
        moved = (
            update(gradients) if self.scaling is None else self.scaling.guarded(gradients, update)
        )
        return loss, [*moved, *self._remember(context)]

    def gradients(
        self, values: Array, target: Array, scale: Array
    ) -> tuple[Array, dict[str, Array]]:
        """Of the scaled loss, without dropout."""

        def compute() -> tuple[Array, Array]:
            loss, _ = self._loss(values, target, None)
            return loss * tf.cast(scale, loss.dtype), loss

        trained = {
            name: variable for name, variable in self.variables.items() if variable.trainable
        }
        found, loss = differentiate(compute, list(trained.values()))
        return loss, dict(zip(trained, map(tf.convert_to_tensor, found), strict=True))

    def _loss(
        self, values: Array, target: Array, count: Array | None
    ) -> tuple[Array, LoweringContext]:
        context = self._begin(training=True, count=count)
        output = wide(self.network(self.variables, values, context))
        return tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(target, output)
        ), context

    def _begin(self, *, training: bool, count: Array | None = None) -> LoweringContext:
        return LoweringContext(
            self.context.dtype, training, self.context.xla, self.context.seed, count
        )

    def _count(self) -> Array | None:
        return None if self.draws is None else self.draws.assign_add(1)

    def _remember(self, context: LoweringContext) -> Updates:
        return [
            self.variables[name].assign(
                tf.cast(value, self.variables[name].dtype), read_value=False
            )
            for name, value in context.statistics.items()
        ]


def differentiate(
    compute: Callable[[], tuple[Array, Any]], weights: list[Any]
) -> tuple[list[Array], Any]:
    """Gradients of the first of what is computed, and the rest. With a tape, or in a session's graph, which needs none."""
    if not tf.executing_eagerly() and not tf.inside_function():
        value, rest = compute()
        return tf.compat.v1.gradients(value, weights), rest
    with tf.GradientTape() as tape:
        value, rest = compute()
    return tape.gradient(value, weights), rest
