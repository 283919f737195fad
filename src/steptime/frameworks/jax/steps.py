"""The functions that are compiled, one per phase.

They are pure: from state and batch to new state and results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from steptime.frameworks.jax.context import Array, LoweringContext, Weights, at_least_fp32
from steptime.frameworks.jax.layout import Layout
from steptime.frameworks.jax.loss_scaling import LossScaling, all_finite, select, update_scale
from steptime.frameworks.jax.lowering import Lowered


class Moving(NamedTuple):
    """What changes in training behaviour although no gradient moves it."""

    statistics: dict[str, Array]
    key: Array | None  # None: no random numbers are drawn


class State(NamedTuple):
    """Everything that one step passes on to the next."""

    weights: dict[str, Array]  # the trainable ones
    moving: Moving
    optimizer: Any = None  # optax's state
    loss_scaling: LossScaling | None = None


@dataclass(frozen=True)
class Steps:
    network: Lowered
    layout: Layout
    dtype: Any  # of activations
    optimizer: Any  # optax's; None: nothing is trained
    has_cudnn: bool = False  # whether the device has cuDNN's fused attention
    # Averages gradients over the ranks that share a step.
    average: Callable[[Any], Any] = lambda gradients: gradients

    def infer(self, weights: Weights, moving: Moving, values: Array) -> Array:
        context = self._context(training=False)
        return self.network(weights | moving.statistics, values, context)

    def _context(self, *, training: bool, key: Array | None = None) -> LoweringContext:
        return LoweringContext(self.layout, self.dtype, training, key, self.has_cudnn)

    def _loss(
        self, weights: Weights, moving: Moving, values: Array, target: Array
    ) -> tuple[Array, Moving]:
        context = self._context(training=True, key=moving.key)
        output = at_least_fp32(self.network(weights | moving.statistics, values, context))
        # Targets are in range; the default mode would check each of them.
        target_indices = target[..., None]
        chosen = jnp.take_along_axis(output, target_indices, axis=-1, mode="clip")[..., 0]
        loss = (jax.nn.logsumexp(output, axis=-1) - chosen).mean()
        return loss, Moving(moving.statistics | context.statistics, context.key)

    def gradients(
        self, weights: Weights, moving: Moving, values: Array, target: Array, scale: Array
    ) -> tuple[Array, Weights]:
        """The loss and the gradients of the scaled loss, without dropout."""

        def scaled_loss(weights: Weights) -> tuple[Array, Array]:
            loss, _ = self._loss(weights, moving._replace(key=None), values, target)
            return loss * scale, loss

        gradients, loss = jax.grad(scaled_loss, has_aux=True)(weights)
        return loss, gradients

    def forward(
        self, weights: Weights, moving: Moving, values: Array, target: Array
    ) -> tuple[Moving, Array, list[Array]]:
        """Returns what a backward pass would need, because XLA writes only outputs to memory."""

        def loss_of(weights: Weights) -> tuple[Array, Moving]:
            return self._loss(weights, moving, values, target)

        loss, backward, moved = jax.vjp(loss_of, weights, has_aux=True)
        # Inputs are in memory anyway; to return them would copy them.
        inputs = {id(leaf) for leaf in jax.tree.leaves((weights, moving, values, target))}
        residuals = [leaf for leaf in jax.tree.leaves(backward) if id(leaf) not in inputs]
        return moved, loss, residuals

    def train(self, state: State, values: Array, target: Array) -> tuple[State, Array]:
        differentiate = jax.value_and_grad(self._loss, has_aux=True)
        (loss, moving), gradients = differentiate(state.weights, state.moving, values, target)
        weights, optimizer = self._update(state, self.average(gradients))
        return State(weights, moving, optimizer), loss

    def train_scaled(self, state: State, values: Array, target: Array) -> tuple[State, Array]:
        assert state.loss_scaling is not None
        scale = state.loss_scaling.scale

        def scaled_loss(weights: Weights) -> tuple[Array, tuple[Array, Moving]]:
            loss, moving = self._loss(weights, state.moving, values, target)
            return loss * scale, (loss, moving)

        gradients, (loss, moving) = jax.grad(scaled_loss, has_aux=True)(state.weights)
        gradients = self.average(gradients)
        # Checked after averaging, so that all ranks decide the same.
        finite = all_finite(gradients)
        unscaled = jax.tree.map(lambda gradient: gradient / scale, gradients)
        updated = self._update(state, unscaled)
        weights, optimizer = select(finite, updated, (state.weights, state.optimizer))
        loss_scaling = update_scale(state.loss_scaling, finite)
        return State(weights, moving, optimizer, loss_scaling), loss

    def _update(self, state: State, gradients: Weights) -> tuple[Weights, Any]:
        updates, optimizer = self.optimizer.update(gradients, state.optimizer, state.weights)
        return jax.tree.map(jnp.add, state.weights, updates), optimizer
