"""JAX, classes 3 and 5: gradients, statistics, optimizer, dropout and low precision."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from benchmarks.mistakes.mistake import Patcher, Suite
from benchmarks.mistakes.networks import own_network

from steptime.frameworks.jax import optimizer as optimizers
from steptime.frameworks.jax import settings
from steptime.frameworks.jax import steps as steps_module
from steptime.frameworks.jax.context import LoweringContext
from steptime.frameworks.jax.ops import OPS, images
from steptime.frameworks.jax.program import JaxProgram
from steptime.frameworks.jax.steps import Steps

SUITE = Suite("jax", "compiled")
NORMAL = own_network("normal")
GATED = own_network("gated")
MLP = "mnist-mlp"
BF16 = {"precision": "bf16"}


# Moving statistics


def wrong_average(name: str, text: str, wrong: Any, network: str = NORMAL, **case: Any) -> None:
    """`wrong` gets the old average, the batch's value and the momentum."""

    def patch(patcher: Patcher) -> None:
        def update(
            original: Any, layer: Any, weights: Any, context: Any, role: str, v: Any
        ) -> None:
            # A mistake of one precision is not made in others.
            if case and context.dtype != jnp.bfloat16:
                original(layer, weights, context, role, v)
                return
            moved = wrong(weights[role], v, layer.op.momentum)
            context.statistics[f"{layer.name}.{role}"] = moved.astype(weights[role].dtype)

        patcher.function(images, "_update_average", update)

    SUITE.add(5 if case else 3, network, patch, text, name=name, **case)


wrong_average(
    "statistics_never_move", "Moving statistics are never updated", lambda old, new, share: old
)
wrong_average(
    "statistics_momentum_0.01",
    "Statistics move by 0.01 for 0.1",
    lambda old, new, share: 0.99 * old + 0.01 * new,
    "resnet56-cifar",
)
wrong_average(
    "statistics_momentum_0.9",
    "Statistics move by 1 − momentum",
    lambda old, new, share: share * old + (1 - share) * new,
)
wrong_average(
    "statistics_in_bf16",
    "Moving statistics are rounded to bf16",
    lambda old, new, share: ((1 - share) * old + share * new).astype(jnp.bfloat16),
    **BF16,
)


@SUITE(3, NORMAL)
def biased_moving_variance(patch: Patcher) -> None:
    """The moving variance is the biased one."""

    def update(
        original: Any, layer: Any, weights: Any, context: Any, role: str, value: Any
    ) -> None:
        if role == "running_variance":
            # 4 images of 10 × 10 cells.
            value = value * (399 / 400)
        original(layer, weights, context, role, value)

    patch.function(images, "_update_average", update)


@SUITE(3, NORMAL)
def statistics_constant_backward(patch: Patcher) -> None:
    """The backward pass takes the batch's statistics for constants."""

    def moments(original: Any, *arguments: Any) -> Any:
        return jax.lax.stop_gradient(original(*arguments))

    patch.function(images, "_moments_in_two_passes", moments)


# Gradients and loss


@SUITE(3, "lenet5")
def one_gradient_zero(patch: Patcher) -> None:
    """The second dense layer is not trained: its weight has a stopped gradient."""

    def dense(original: Any, layer: Any, weights: Any, context: Any, x: Any) -> Any:
        if layer.name == "dense2":
            weights = weights | {"weight": jax.lax.stop_gradient(weights["weight"])}
        return original(layer, weights, context, x)

    patch.entry(OPS, "dense", dense)


@SUITE(3, GATED)
def loss_summed_over_positions(patch: Patcher) -> None:
    """The training step's gradient is that of the sum over positions."""

    def update(original: Any, self: Steps, state: Any, gradients: Any) -> Any:
        return original(self, state, jax.tree.map(lambda gradient: 8 * gradient, gradients))

    patch.function(Steps, "_update", update)


@SUITE(3, GATED)
def duplicate_tokens_overwrite(patch: Patcher) -> None:
    """The embedding's gradient keeps the last of equal tokens instead of their sum."""

    def embedding(original: Any, layer: Any, weights: Any, context: Any, x: Any) -> Any:
        order = jnp.arange(x.size)
        last = jnp.zeros(len(weights["weight"]), int).at[x.ravel()].max(order)
        counts = (last[x.ravel()] == order).reshape(*x.shape, 1)
        rows = original(layer, weights, context, x)
        return jnp.where(counts, rows, jax.lax.stop_gradient(rows))

    patch.entry(OPS, "embedding", embedding)


@SUITE(3, GATED)
def backward_through_time_cut(patch: Patcher) -> None:
    """The gradient does not go back through time."""

    def gru(original: Any, layer: Any, weights: Any, context: Any, x: Any) -> Any:
        fixed = {"weight_hidden": jax.lax.stop_gradient(weights["weight_hidden"])}
        return original(layer, weights | fixed, context, x)

    patch.entry(OPS, "gru", gru)


@jax.custom_vjp
def round_backward(x: Any) -> Any:
    return x


round_backward.defvjp(
    lambda x: (x, None),
    lambda _, gradient: (gradient.astype(jnp.bfloat16).astype(gradient.dtype),),
)


@SUITE(3, NORMAL)
def backward_in_bf16(patch: Patcher) -> None:
    """Gradients go back through convolutions in bf16."""

    def conv(original: Any, *arguments: Any) -> Any:
        return round_backward(original(*arguments))

    patch.entry(OPS, "conv", conv)


# Optimizer


def wrong_direction(name: str, network: str, text: str, make: Any) -> None:
    def patch(patcher: Patcher) -> None:
        def direction(original: Any, spec: Any, module: Any) -> Any:
            # Probes of dropout have plain SGD.
            return original(spec, module) if spec.algorithm == "sgd" else make(spec)

        patcher.function(optimizers, "_direction", direction)

    SUITE.add(3, network, patch, text, name=name)


wrong_direction(
    "nesterov", NORMAL, "Momentum is Nesterov's", lambda spec: optax.trace(0.9, nesterov=True)
)
wrong_direction(
    "momentum_is_an_average", NORMAL, "Momentum averages gradients", lambda spec: optax.ema(0.9)
)
wrong_direction(
    "adam_epsilon_inside_root",
    MLP,
    "Adam adds epsilon inside the root too",
    lambda spec: optax.scale_by_adam(eps=0.0, eps_root=spec.epsilon),
)
wrong_direction(
    "adam_epsilon_1e-8", MLP, "Adam has epsilon 1e-8 for 1e-7", lambda spec: optax.scale_by_adam()
)


@SUITE(3, NORMAL)
def decay_decoupled(patch: Patcher) -> None:
    """Weight decay is decoupled where it belongs to the gradient."""

    def make(original: Any, spec: Any) -> Any:
        return optax.chain(
            optax.trace(spec.momentum),
            optax.add_decayed_weights(spec.weight_decay),
            optax.scale_by_learning_rate(spec.rate),
        )

    from steptime.frameworks.jax import program

    patch.function(program, "optimizer_for", make)


# Dropout


def wrong_dropout(name: str, text: str, wrong: Any, network: str = MLP) -> None:
    """`wrong` gets the context, x and the rate, and is called only if values are dropped."""

    def patch(patcher: Patcher) -> None:
        def dropout(original: Any, layer: Any, weights: Any, context: Any, x: Any) -> Any:
            if not context.training or context.key is None or not layer.op.rate:
                return x
            return wrong(context, x, layer.op.rate)

        patcher.entry(OPS, "dropout", dropout)

    SUITE.add(5, network, patch, text, name=name)


def drop(key: Any, x: Any, rate: float, shape: Any = None) -> Any:
    mask = jax.random.bernoulli(key, 1 - rate, shape or x.shape)
    return jnp.where(mask, x / (1 - rate), 0)


def over_time(x: Any) -> tuple[int, ...]:
    """The shape of one mask for all time; a layer without time drops as it should."""
    return (len(x), 1, x.shape[2]) if x.ndim == 3 else x.shape


def redraw_backward(context: LoweringContext, x: Any, rate: float) -> Any:
    dropped = drop(context.draw_key(), x, rate)
    again = drop(context.draw_key(), x, rate)
    return again + jax.lax.stop_gradient(dropped - again)


wrong_dropout("dropout_never_drops", "Dropout never drops", lambda context, x, rate: x)
wrong_dropout(
    "dropout_key_never_split",
    "The key is never split: every step and layer has one mask",
    lambda context, x, rate: drop(context.key, x, rate),
)
wrong_dropout(
    "dropout_key_of_program",
    "The key is a constant of the program",
    lambda context, x, rate: drop(jax.random.key(0), x, rate),
)
wrong_dropout(
    "dropout_one_mask_for_samples",
    "All samples share one mask",
    lambda context, x, rate: drop(context.draw_key(), x, rate, (1, *x.shape[1:])),
)
wrong_dropout(
    "dropout_whole_features",
    "Features drop over all time",
    lambda context, x, rate: drop(context.draw_key(), x, rate, over_time(x)),
    GATED,
)
wrong_dropout(
    "dropout_rate_for_keep",
    "The rate is taken for the share that is kept",
    lambda context, x, rate: drop(context.draw_key(), x, 1 - rate),
    GATED,
)
wrong_dropout("dropout_drawn_again", "The backward pass draws another mask", redraw_backward)


# Low precision


@SUITE(5, NORMAL, **BF16)
def weights_without_masters(patch: Patcher) -> None:
    """Training in bf16 keeps its weights in bf16."""
    patch.function(settings, "is_mixed", lambda original, case: False)


@SUITE(5, "lenet5", **BF16)
def fp32_for_bf16(patch: Patcher) -> None:
    """All phases compute in fp32 where bf16 was asked for."""

    def computed_dtype(original: Any, case: Any) -> Any:
        return jnp.dtype(jnp.float32) if case.precision == "bf16" else original(case)

    patch.function(settings, "computed_dtype", computed_dtype)


@SUITE(5, "lenet5", **BF16)
def products_in_fp32_for_bf16(patch: Patcher) -> None:
    """Dense layers and convolutions compute in fp32 where bf16 was asked for."""

    def wide(original: Any, layer: Any, weights: Any, context: Any, x: Any) -> Any:
        if context.dtype != jnp.bfloat16:
            return original(layer, weights, context, x)
        at_least = {name: weight.astype(jnp.float32) for name, weight in weights.items()}
        return original(layer, at_least, context, x.astype(jnp.float32))

    patch.entry(OPS, "dense", wide)
    patch.entry(OPS, "conv", wide)


@SUITE(5, "lenet5")
def bf16_for_fp32(patch: Patcher) -> None:
    """Activations are bf16 where fp32 was asked for."""

    def computed_dtype(original: Any, case: Any) -> Any:
        return jnp.dtype(jnp.bfloat16) if case.precision == "fp32" else original(case)

    patch.function(settings, "computed_dtype", computed_dtype)


@SUITE(5, own_network("bell"), **BF16)
def normalisation_in_bf16(patch: Patcher) -> None:
    """Layer norm computes mean and variance in bf16."""

    def layer_norm(original: Any, layer: Any, weights: Any, context: Any, x: Any) -> Any:
        offset = x - x.mean(-1, keepdims=True, dtype=x.dtype)
        variance = jnp.square(offset).mean(-1, keepdims=True, dtype=x.dtype)
        normalised = offset * jax.lax.rsqrt(variance + layer.op.epsilon)
        return (normalised * weights["weight"] + weights["bias"]).astype(x.dtype)

    patch.entry(OPS, "layer_norm", layer_norm)


@SUITE(5, GATED, **BF16)
def loss_in_bf16(patch: Patcher) -> None:
    """The softmax of the loss computes in bf16."""

    def low(original: Any, x: Any) -> Any:
        # The loss takes the softmax again, which changes nothing.
        return original(jax.nn.log_softmax(x) if x.dtype == jnp.bfloat16 else x)

    patch.function(steps_module, "at_least_fp32", low)


@SUITE(5, "cifar10-cnn", precision="fp16")
def fp16_without_loss_scaling(patch: Patcher) -> None:
    """Training in fp16 does not scale its loss."""

    def start(original: Any, self: JaxProgram) -> Any:
        return original(self)._replace(loss_scaling=None)

    patch.function(JaxProgram, "_start", start)
