"""What is computed, one function per phase, from variables and batch. Who runs it, and as what, is not known here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from steptime.frameworks.tensorflow.context import Array, Walk, wide
from steptime.frameworks.tensorflow.lowering import Lowered
from steptime.frameworks.tensorflow.optimizer import Rule
from steptime.frameworks.tensorflow.scaling import Scaling

Updates = list[Any]  # operations that change variables; only a session must be told to run them


@dataclass(frozen=True)
class Steps:
    network: Lowered
    variables: dict[str, Any]  # all of them, by canonical name
    walk: Walk  # as it begins
    draws: Any = None  # the count of steps with random numbers; None: nothing is drawn
    rule: Rule | None = None
    scaling: Scaling | None = None
    average: Callable[[list[Array]], list[Array]] = lambda slopes: (
        slopes
    )  # over the ranks that share a step

    def infer(self, values: Array) -> Array:
        return self.network(self.variables, values, self._begin(training=False))

    def forward(self, values: Array, target: Array) -> tuple[Array, Updates]:
        """Under a tape, which keeps what a backward pass would need where there is no graph that tells."""
        with tf.GradientTape():
            loss, walk = self._loss(values, target, self._count())
        return loss, self._remember(walk)

    def train(self, values: Array, target: Array) -> tuple[Array, Updates]:
        assert self.rule is not None
        count = self._count()

        def compute() -> tuple[Array, tuple[Array, Walk]]:
            loss, walk = self._loss(values, target, count)
            return loss if self.scaling is None else loss * self.scaling.scale, (loss, walk)

        slopes, (loss, walk) = differentiate(compute, self.rule.weights)
        slopes, update = self.average(slopes), self.rule.update
        moved = update(slopes) if self.scaling is None else self.scaling.guarded(slopes, update)
        return loss, [*moved, *self._remember(walk)]

    def slopes(self, values: Array, target: Array, scale: Array) -> tuple[Array, dict[str, Array]]:
        """Of the scaled loss, without dropout."""

        def compute() -> tuple[Array, Array]:
            loss, _ = self._loss(values, target, None)
            return loss * tf.cast(scale, loss.dtype), loss

        trained = {
            name: variable for name, variable in self.variables.items() if variable.trainable
        }
        found, loss = differentiate(compute, list(trained.values()))
        return loss, dict(zip(trained, map(tf.convert_to_tensor, found), strict=True))

    def _loss(self, values: Array, target: Array, count: Array | None) -> tuple[Array, Walk]:
        walk = self._begin(training=True, count=count)
        output = wide(self.network(self.variables, values, walk))
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(target, output)), walk

    def _begin(self, *, training: bool, count: Array | None = None) -> Walk:
        return Walk(self.walk.dtype, training, self.walk.xla, self.walk.seed, count)

    def _count(self) -> Array | None:
        return None if self.draws is None else self.draws.assign_add(1)

    def _remember(self, walk: Walk) -> Updates:
        return [
            self.variables[name].assign(
                tf.cast(value, self.variables[name].dtype), read_value=False
            )
            for name, value in walk.statistics.items()
        ]


def differentiate(
    compute: Callable[[], tuple[Array, Any]], weights: list[Any]
) -> tuple[list[Array], Any]:
    """Slopes of the first of what is computed, and the rest. With a tape, or in a session's graph, which needs none."""
    if not tf.executing_eagerly() and not tf.inside_function():
        value, rest = compute()
        return tf.compat.v1.gradients(value, weights), rest
    with tf.GradientTape() as tape:
        value, rest = compute()
    return tape.gradient(value, weights), rest
