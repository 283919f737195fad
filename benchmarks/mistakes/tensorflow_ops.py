"""TensorFlow, classes 2 and 4: state that is ignored, and ops that compute something else."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import tensorflow as tf
from benchmarks.mistakes.mistake import Patcher, Suite
from benchmarks.mistakes.networks import own_network

from steptime.frameworks.tensorflow.ops import OPS, images

SUITE = Suite("tensorflow", "graph")
NORMAL = own_network("normal")
GATED = own_network("gated")
BELL = own_network("bell")
GROUPED = own_network("grouped")
Weights = dict[str, Any]


def wrong_op(op: str, wrong: Callable[..., Any]) -> Any:
    def patch(patcher: Patcher) -> None:
        patcher.entry(OPS, op, wrong)

    return patch


def wrong_weights(op: str, change: Callable[[Weights], Weights], *, inference: bool = False) -> Any:
    """The op gets changed weights. `inference`: only there."""

    def compute(original: Any, layer: Any, weights: Weights, context: Any, *inputs: Any) -> Any:
        tensors = {role: tf.convert_to_tensor(weight) for role, weight in weights.items()}
        changes = {} if inference and context.training else change(tensors)
        return original(layer, tensors | changes, context, *inputs)

    return wrong_op(op, compute)


def wrong_settings(op: str, **settings: Any) -> Any:
    """The op gets other settings than the layer has."""

    def compute(original: Any, layer: Any, weights: Weights, context: Any, *inputs: Any) -> Any:
        values = layer.op.settings() | settings
        changed = SimpleNamespace(name=layer.name, shape=layer.shape, op=SimpleNamespace(**values))
        return original(changed, weights, context, *inputs)

    return wrong_op(op, compute)


def zero(role: str) -> Callable[[Weights], Weights]:
    return lambda weights: {role: 0 * weights[role]}


def swap(weights: Weights) -> Weights:
    mean = weights["running_mean"]
    return {"running_mean": weights["running_variance"], "running_variance": tf.abs(mean)}


for name, network, patch, text in (
    (
        "statistics_swapped",
        NORMAL,
        wrong_weights("batch_norm", swap, inference=True),
        "Inference swaps moving mean and variance",
    ),
    (
        "moving_variance_ignored",
        NORMAL,
        wrong_weights(
            "batch_norm",
            lambda weights: {"running_variance": 0 * weights["running_variance"] + 1},
            inference=True,
        ),
        "Inference takes 1 for the moving variance",
    ),
    (
        "batch_norm_without_scale",
        NORMAL,
        wrong_weights("batch_norm", lambda weights: {"weight": 0 * weights["weight"] + 1}),
        "Batch norm ignores its scale, Keras' default in its Inception",
    ),
    (
        "batch_norm_epsilon_1e-3",
        NORMAL,
        wrong_settings("batch_norm", epsilon=1e-3),
        "Batch norm has epsilon 1e-3 for 1e-5, the default of Keras",
    ),
    (
        "batch_norm_epsilon_raised",
        NORMAL,
        wrong_settings("batch_norm", epsilon=1.001e-5),
        "Batch norm has epsilon 1.001e-5 for 1e-5, as Keras' ResNets have",
    ),
    (
        "layer_norm_epsilon_1e-3",
        BELL,
        wrong_settings("layer_norm", epsilon=1e-3),
        "Layer norm has epsilon 1e-3 for 1e-5, the default of Keras",
    ),
    (
        "layer_norm_without_bias",
        BELL,
        wrong_weights("layer_norm", zero("bias")),
        "Layer norm ignores its bias",
    ),
    ("dense_without_bias", "lenet5", wrong_weights("dense", zero("bias")), "Dense has no bias"),
    (
        "lstm_without_bias",
        own_network("memory"),
        wrong_weights("lstm", zero("bias")),
        "The LSTM ignores its bias",
    ),
    (
        "positions_ignored",
        own_network("decoder"),
        wrong_weights("positions", zero("weight")),
        "The positions are not added",
    ),
    (
        "token_0_is_padding",
        GATED,
        wrong_op(
            "embedding",
            lambda original, layer, weights, context, x: (
                original(layer, weights, context, x) * tf.cast((x != 0)[..., None], context.dtype)
            ),
        ),
        "Token 0 gives a row of zeros",
    ),
):
    SUITE.add(2, network, patch, text, name=name)

for name, network, patch, text in (
    (
        "lrn_alpha_not_divided",
        own_network("neighbours"),
        wrong_settings("lrn", alpha=5e-4),
        "LRN does not divide alpha by the size, as TensorFlow's own",
    ),
    ("gelu_tanh_for_erf", BELL, wrong_settings("gelu", tanh=True), "gelu by tanh"),
    (
        "lrn_size_halved",
        own_network("neighbours"),
        wrong_settings("lrn", size=3, alpha=6e-5),
        "LRN sums over three channels for five",
    ),
):
    SUITE.add(4, network, patch, text, name=name)


@SUITE(4, "resnet56-cifar")
def same_for_explicit_padding(patch: Patcher) -> None:
    """Strided convolutions take SAME for a padding of 1 on both sides."""

    def padding(original: Any, pads: Any, x: Any, window: Any, stride: Any) -> Any:
        named = original(pads, x, window, stride)
        return named if isinstance(named, str) else "SAME"

    patch.function(images, "_padding", padding)


@SUITE(4, "lenet5")
def flatten_with_channels_last(patch: Patcher) -> None:
    """Images are flattened as they lie in memory, with channels last."""

    def flatten(original: Any, layer: Any, weights: Weights, context: Any, x: Any) -> Any:
        return tf.reshape(x, (-1, *layer.shape))

    patch.entry(OPS, "flatten", flatten)


@SUITE(4, GROUPED)
def groups_in_reverse(patch: Patcher) -> None:
    """The groups of a convolution are joined in reverse order."""

    def by_group(original: Any, groups: int, *rest: Any) -> Any:
        joined = original(groups, *rest)
        return tf.concat(tf.split(joined, groups, 3)[::-1], 3) if groups > 1 else joined

    patch.function(images, "_conv_by_group", by_group)


@SUITE(4, GROUPED)
def dilated_crop_at_start(patch: Patcher) -> None:
    """A dilated convolution in training crops the wrong side."""

    def dilated(original: Any, op: Any, kernel: Any, x: Any) -> Any:
        return tf.roll(original(op, kernel, x), 1, 1)

    patch.function(images, "_dilated_conv", dilated)


@SUITE(4, own_network("decoder"))
def softmax_over_queries(patch: Patcher) -> None:
    """Attention's softmax is over the queries, not over the keys."""

    def attention(original: Any, layer: Any, weights: Weights, context: Any, *inputs: Any) -> Any:
        softmax = tf.nn.softmax
        tf.nn.softmax = lambda scores: softmax(scores, axis=-2)
        try:
            return original(layer, weights, context, *inputs)
        finally:
            tf.nn.softmax = softmax

    patch.entry(OPS, "attention", attention)


@SUITE(4, own_network("decoder"))
def attention_without_scale(patch: Patcher) -> None:
    """Attention does not scale its scores."""

    def attention(original: Any, layer: Any, weights: Weights, context: Any, *inputs: Any) -> Any:
        query, keys, values = inputs
        scaled = query / layer.op.scale_for(query.shape[-1])
        return original(layer, weights, context, scaled, keys, values)

    patch.entry(OPS, "attention", attention)


@SUITE(4, GATED)
def gru_gates_in_keras_order(patch: Patcher) -> None:
    """The GRU takes its gates in the order of Keras: update, reset, candidate."""

    def gru(original: Any, layer: Any, weights: Weights, context: Any, x: Any) -> Any:
        def reorder(weight: Any) -> Any:
            reset, update, candidate = tf.split(weight, 3, -1)
            return tf.concat([update, reset, candidate], -1)

        changed = {role: reorder(weights[role]) for role in weights if role != "bias_hidden"}
        return original(layer, weights | changed, context, x)

    patch.entry(OPS, "gru", gru)


@SUITE(4, own_network("neighbours"))
def concat_reversed(patch: Patcher) -> None:
    """Branches are joined in reverse order."""

    def concat(original: Any, layer: Any, weights: Weights, context: Any, *inputs: Any) -> Any:
        return original(layer, weights, context, *reversed(inputs))

    patch.entry(OPS, "concat", concat)


@SUITE(4, NORMAL)
def add_forgets_branch(patch: Patcher) -> None:
    """A residual block forgets its shortcut."""

    def add(original: Any, layer: Any, weights: Weights, context: Any, a: Any, b: Any) -> Any:
        return b

    patch.entry(OPS, "add", add)


@SUITE(4, "cifar10-cnn")
def relu6_for_relu(patch: Patcher) -> None:
    """ReLU is clipped at 6."""

    def relu(original: Any, layer: Any, weights: Weights, context: Any, x: Any) -> Any:
        return tf.nn.relu6(x)

    patch.entry(OPS, "relu", relu)
