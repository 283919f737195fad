"""JAX, classes 2 and 4: state that is ignored, and ops that compute something else."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
from benchmarks.mistakes.mistake import Patcher, Suite
from benchmarks.mistakes.networks import own_network
from jax import lax

from steptime.frameworks.jax.layout import Layout
from steptime.frameworks.jax.ops import OPS, sequences

SUITE = Suite("jax", "compiled")
NORMAL = own_network("normal")
GATED = own_network("gated")
GROUPED = own_network("grouped")
BELL = own_network("bell")
Weights = dict[str, Any]


def wrong_op(op: str, wrong: Callable[..., Any]) -> Any:
    def patch(patcher: Patcher) -> None:
        patcher.entry(OPS, op, wrong)

    return patch


def wrong_weights(op: str, change: Callable[[Weights], Weights], *, inference: bool = False) -> Any:
    """The op gets changed weights. `inference`: only there."""

    def compute(original: Any, layer: Any, weights: Weights, context: Any, *inputs: Any) -> Any:
        changes = {} if inference and context.training else change(weights)
        return original(layer, weights | changes, context, *inputs)

    return wrong_op(op, compute)


def wrong_settings(op: str, **settings: Any) -> Any:
    """The op gets other settings than the layer has."""

    def compute(original: Any, layer: Any, weights: Weights, context: Any, *inputs: Any) -> Any:
        values = layer.op.settings() | settings
        changed = SimpleNamespace(name=layer.name, shape=layer.shape, op=SimpleNamespace(**values))
        return original(changed, weights, context, *inputs)

    return wrong_op(op, compute)


def zero(*roles: str) -> Callable[[Weights], Weights]:
    return lambda weights: {role: 0 * weights[role] for role in roles if role in weights}


def forget_bias(weights: Weights) -> Weights:
    units = len(weights["bias"]) // 4
    return {"bias": weights["bias"].at[units : 2 * units].add(1)}


def padding_row(weights: Weights) -> Weights:
    return {"weight": weights["weight"].at[0].set(0)}


for name, network, patch, text in (
    (
        "statistics_swapped",
        NORMAL,
        wrong_weights(
            "batch_norm",
            lambda w: {
                "running_mean": w["running_variance"],
                "running_variance": abs(w["running_mean"]),
            },
            inference=True,
        ),
        "Inference swaps moving mean and variance",
    ),
    (
        "moving_mean_ignored",
        NORMAL,
        wrong_weights("batch_norm", zero("running_mean"), inference=True),
        "Inference takes 0 for the moving mean",
    ),
    (
        "batch_norm_without_scale",
        NORMAL,
        wrong_weights("batch_norm", lambda w: {"weight": 0 * w["weight"] + 1}),
        "Batch norm ignores its scale",
    ),
    (
        "batch_norm_without_bias",
        NORMAL,
        wrong_weights("batch_norm", zero("bias")),
        "Batch norm ignores its bias",
    ),
    (
        "batch_norm_epsilon_1e-3",
        NORMAL,
        wrong_settings("batch_norm", epsilon=1e-3),
        "Batch norm has epsilon 1e-3 for 1e-5",
    ),
    (
        "layer_norm_epsilon_1e-6",
        BELL,
        wrong_settings("layer_norm", epsilon=1e-6),
        "Layer norm has epsilon 1e-6 for 1e-5, its default in Flax",
    ),
    (
        "layer_norm_without_scale",
        BELL,
        wrong_weights("layer_norm", lambda w: {"weight": 0 * w["weight"] + 1}),
        "Layer norm ignores its scale",
    ),
    ("conv_without_bias", "lenet5", wrong_weights("conv", zero("bias")), "No bias in convolutions"),
    (
        "lstm_without_bias",
        own_network("memory"),
        wrong_weights("lstm", zero("bias")),
        "The LSTM ignores its bias",
    ),
    (
        "lstm_with_forget_bias",
        own_network("memory"),
        wrong_weights("lstm", forget_bias),
        "The LSTM adds 1 to the bias of its forget gate, Flax's default",
    ),
    (
        "gru_without_hidden_bias",
        GATED,
        wrong_weights("gru", zero("bias_hidden")),
        "The GRU ignores the bias of the candidate's state",
    ),
    (
        "token_0_is_padding",
        GATED,
        wrong_weights("embedding", padding_row),
        "Token 0 gives a row of zeros",
    ),
):
    SUITE.add(2, network, patch, text, name=name)

for name, network, patch, text in (
    (
        "lrn_alpha_not_divided",
        own_network("neighbours"),
        wrong_settings("lrn", alpha=5e-4),
        "LRN does not divide alpha by the size",
    ),
    ("gelu_tanh_for_erf", BELL, wrong_settings("gelu", tanh=True), "gelu by tanh, JAX's default"),
):
    SUITE.add(4, network, patch, text, name=name)


@SUITE(4, GROUPED)
def dilation_ignored(patch: Patcher) -> None:
    """Convolutions ignore their dilation and are padded so that the shape fits."""

    def conv(original: Any, layer: Any, weights: Weights, context: Any, x: Any) -> Any:
        if layer.op.dilation == (1, 1):
            return original(layer, weights, context, x)
        y = lax.conv_general_dilated(
            x,
            weights["weight"],
            layer.op.stride,
            ((1, 1), (1, 1)),
            dimension_numbers=context.layout.convolution,
        )
        return y + context.layout.per_channel(weights["bias"], y)

    patch.entry(OPS, "conv", conv)


@SUITE(4, own_network("strided"))
def same_padding_before_image(patch: Patcher) -> None:
    """The larger half of an odd padding goes before the image."""

    def conv(original: Any, layer: Any, weights: Weights, context: Any, x: Any) -> Any:
        values = layer.op.settings()
        values["padding"] = tuple((after, before) for before, after in layer.op.padding)
        return original(SimpleNamespace(op=SimpleNamespace(**values)), weights, context, x)

    patch.entry(OPS, "conv", conv)


@SUITE(4, "lenet5", layout="nhwc")
def flatten_with_channels_last(patch: Patcher) -> None:
    """Images are flattened as they lie in memory, with channels last."""
    patch.entry(
        OPS,
        "flatten",
        lambda original, layer, weights, context, x: x.reshape(len(x), -1),
    )


@SUITE(4, own_network("memory"))
def lstm_gates_in_other_order(patch: Patcher) -> None:
    """The LSTM takes its gates in the order input, candidate, forget, output."""

    def lstm(original: Any, layer: Any, weights: Weights, context: Any, x: Any) -> Any:
        def reorder(weight: Any) -> Any:
            entry, forget, candidate, exit_ = jnp.split(weight, 4, axis=-1)
            return jnp.concatenate([entry, candidate, forget, exit_], -1)

        return original(layer, jax.tree.map(reorder, weights), context, x)

    patch.entry(OPS, "lstm", lstm)


@SUITE(4, GATED)
def gru_resets_before_product(patch: Patcher) -> None:
    """The GRU resets its state before the product, as in the first paper."""

    def gru(original: Any, layer: Any, weights: Weights, context: Any, x: Any) -> Any:
        gates, candidate_weight = jnp.split(weights["weight_hidden"], [2 * layer.op.units], axis=-1)

        def move(hidden: Any, projected: Any) -> Any:
            reset_input, update_input, candidate_input = jnp.split(projected, 3, axis=-1)
            reset_hidden, update_hidden = jnp.split(hidden @ gates, 2, axis=-1)
            reset = jax.nn.sigmoid(reset_input + reset_hidden)
            update = jax.nn.sigmoid(update_input + update_hidden)
            product = (reset * hidden) @ candidate_weight
            candidate = jnp.tanh(candidate_input + product + weights["bias_hidden"])
            hidden = (1 - update) * candidate + update * hidden
            return hidden, hidden

        return sequences._scan(move, sequences._zero_state(layer, x), weights, context, x)

    patch.entry(OPS, "gru", gru)


@SUITE(4, own_network("decoder"))
def attention_scaled_by_all_features(patch: Patcher) -> None:
    """Attention scales by the width of all heads, not of one."""

    def attention(original: Any, layer: Any, weights: Weights, context: Any, *inputs: Any) -> Any:
        query, keys, values = inputs
        return original(layer, weights, context, query / layer.op.heads**0.5, keys, values)

    patch.entry(OPS, "attention", attention)


@SUITE(4, own_network("decoder"))
def causal_mask_excludes_itself(patch: Patcher) -> None:
    """Causal attention of a position sees only the positions before it."""

    def attention(original: Any, layer: Any, weights: Weights, context: Any, *inputs: Any) -> Any:
        if not layer.op.causal:
            return original(layer, weights, context, *inputs)
        query, keys, values = inputs
        # The first position has nothing before it, and sees itself.
        keys = jnp.concatenate([keys[:, :1], keys[:, :-1]], 1)
        values = jnp.concatenate([values[:, :1], values[:, :-1]], 1)
        return original(layer, weights, context, query, keys, values)

    patch.entry(OPS, "attention", attention)


@SUITE(4, own_network("gated"))
def sequence_reversed(patch: Patcher) -> None:
    """The recurrence runs from the last position to the first."""

    def gru(original: Any, layer: Any, weights: Weights, context: Any, x: Any) -> Any:
        return original(layer, weights, context, x[:, ::-1])[:, ::-1]

    patch.entry(OPS, "gru", gru)


@SUITE(4, NORMAL, layout="nhwc")
def kernel_transposed(patch: Patcher) -> None:
    """Kernels are stored with height and width swapped."""

    def to_stored(original: Any, self: Layout, name: str, weight: Any) -> Any:
        stored = original(self, name, weight)
        return stored.transpose(1, 0, 2, 3) if stored.ndim == 4 else stored

    def to_logical(original: Any, self: Layout, name: str, weight: Any) -> Any:
        stored = weight.transpose(1, 0, 2, 3) if weight.ndim == 4 else weight
        return original(self, name, stored)

    patch.function(Layout, "weight_to_stored", to_stored)
    patch.function(Layout, "weight_to_logical", to_logical)


@SUITE(4, own_network("decoder"))
def slice_off_by_one(patch: Patcher) -> None:
    """Slices of features begin and end one too late."""

    def slice_(original: Any, layer: Any, weights: Weights, context: Any, x: Any) -> Any:
        if layer.vocabulary:
            return original(layer, weights, context, x)
        return original(layer, weights, context, jnp.roll(x, -1, -1))

    patch.entry(OPS, "slice", slice_)


@SUITE(4, "cifar10-cnn")
def pool_shifted(patch: Patcher) -> None:
    """Max pools start at the second row and column."""

    def max_pool(original: Any, layer: Any, weights: Weights, context: Any, x: Any) -> Any:
        return original(layer, weights, context, jnp.roll(x, (-1, -1), (2, 3)))

    patch.entry(OPS, "max_pool", max_pool)
