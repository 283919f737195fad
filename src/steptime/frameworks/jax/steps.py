"""The functions that are compiled, one per phase: pure, from state and batch to new state and results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from steptime.frameworks.jax.context import Array, LoweringContext, wide
from steptime.frameworks.jax.layout import Layout
from steptime.frameworks.jax.lowering import Lowered
from steptime.frameworks.jax.scaling import Scaling, all_finite, choose, follow


class Moving(NamedTuple):
    """What changes in training behaviour without being trained."""

    statistics: dict[str, Array]
    key: Array | None  # None: nothing is drawn


class State(NamedTuple):
    """All that one step hands to the next."""

    weights: dict[str, Array]  # the trainable ones
    moving: Moving
    rule: Any = None  # what the optimiser remembers
    scaling: Scaling | None = None


@dataclass(frozen=True)
class Steps:
    network: Lowered
    layout: Layout
    dtype: Any  # of activations
    rule: Any  # optax's; None: nothing is trained
    average: Callable[[Any], Any] = lambda gradients: gradients  # over the ranks that share a step

    def infer(self, weights: dict[str, Array], moving: Moving, values: Array) -> Array:
        return self.network(
            {**weights, **moving.statistics},
            values,
            LoweringContext(self.layout, self.dtype, training=False),
        )

    def _loss(
        self, weights: dict[str, Array], moving: Moving, values: Array, target: Array
    ) -> tuple[Array, Moving]:
        context = LoweringContext(self.layout, self.dtype, training=True, key=moving.key)
        output = wide(self.network({**weights, **moving.statistics}, values, context))
        chosen = jnp.take_along_axis(output, target[..., None], axis=-1, mode="clip")[..., 0]
        return (jax.nn.logsumexp(output, axis=-1) - chosen).mean(), Moving(
            {**moving.statistics, **context.statistics}, context.key
        )

    def gradients(
        self, weights: dict[str, Array], moving: Moving, values: Array, target: Array, scale: Array
    ) -> tuple[Array, dict[str, Array]]:
        """Of the scaled loss, without dropout."""

        def scaled(weights: dict[str, Array]) -> tuple[Array, Array]:
            loss, _ = self._loss(weights, moving._replace(key=None), values, target)
            return loss * scale, loss

        found, loss = jax.grad(scaled, has_aux=True)(weights)
        return loss, found

    def forward(
        self, weights: dict[str, Array], moving: Moving, values: Array, target: Array
    ) -> tuple[Moving, Array, list[Array]]:
        """What a backward pass would need is an output, else XLA would not write it. Inputs are there already."""
        loss, back, moved = jax.vjp(
            lambda w: self._loss(w, moving, values, target), weights, has_aux=True
        )
        given = {id(leaf) for leaf in jax.tree.leaves((weights, moving, values, target))}
        return moved, loss, [leaf for leaf in jax.tree.leaves(back) if id(leaf) not in given]

    def train(self, state: State, values: Array, target: Array) -> tuple[State, Array]:
        (loss, moving), gradients = jax.value_and_grad(self._loss, has_aux=True)(
            state.weights, state.moving, values, target
        )
        weights, rule = self._moved(state, self.average(gradients))
        return State(weights, moving, rule), loss

    def train_scaled(self, state: State, values: Array, target: Array) -> tuple[State, Array]:
        assert state.scaling is not None
        scale = state.scaling.scale

        def scaled(weights: dict[str, Array]) -> tuple[Array, tuple[Array, Moving]]:
            loss, moving = self._loss(weights, state.moving, values, target)
            return loss * scale, (loss, moving)

        gradients, (loss, moving) = jax.grad(scaled, has_aux=True)(state.weights)
        gradients = self.average(gradients)
        finite = all_finite(gradients)
        moved = self._moved(state, jax.tree.map(lambda gradient: gradient / scale, gradients))
        weights, rule = choose(finite, moved, (state.weights, state.rule))
        return State(weights, moving, rule, follow(state.scaling, finite)), loss

    def _moved(self, state: State, gradients: dict[str, Array]) -> tuple[dict[str, Array], Any]:
        updates, rule = self.rule.update(gradients, state.rule, state.weights)
        return jax.tree.map(jnp.add, state.weights, updates), rule
