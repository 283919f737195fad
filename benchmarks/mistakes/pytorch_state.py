"""PyTorch, class 2: state that is ignored, swapped or made up."""

from __future__ import annotations

from typing import Any

import torch
from benchmarks.mistakes.mistake import Patcher, Suite
from benchmarks.mistakes.networks import own_network

from steptime.frameworks.pytorch.ops import FUNCTIONS, OPS

SUITE = Suite("pytorch", "eager")


def wrong_function(name: str, wrong: Any) -> Any:
    """A patch of one of the functions that generated code calls."""

    def patch(patcher: Patcher) -> None:
        patcher.entry(FUNCTIONS, name, wrong)

    return patch


def wrong_text(name: str, old: str, new: str) -> Any:
    """A patch of the generated line of an op."""

    def patch(patcher: Patcher) -> None:
        def expression(original: Any, site: Any) -> str:
            text: str = original(site)
            return text.replace(old, new)

        patcher.entry(OPS, name, expression)

    return patch


def swap_statistics(f: Any, x: Any, weight: Any, bias: Any, mean: Any, var: Any, *rest: Any) -> Any:
    if rest[0]:
        return f(x, weight, bias, mean, var, *rest)
    return f(x, weight, bias, var, mean.abs(), *rest)


def ignore_mean(f: Any, x: Any, weight: Any, bias: Any, mean: Any, var: Any, *rest: Any) -> Any:
    return f(x, weight, bias, mean if rest[0] else torch.zeros_like(mean), var, *rest)


def ignore_variance(f: Any, x: Any, weight: Any, bias: Any, mean: Any, var: Any, *rest: Any) -> Any:
    return f(x, weight, bias, mean, var if rest[0] else torch.ones_like(var), *rest)


def use_batch_statistics(f: Any, x: Any, w: Any, b: Any, mean: Any, var: Any, *rest: Any) -> Any:
    if rest[0]:
        return f(x, w, b, mean, var, *rest)
    return f(x, w, b, None, None, True, *rest[1:])


def batch_norm_epsilon(epsilon: float) -> Any:
    def batch_norm(f: Any, *arguments: Any) -> Any:
        return f(*arguments[:-2], epsilon, arguments[-1])

    return batch_norm


def without_layer_scale(f: Any, x: Any, shape: Any, weight: Any, bias: Any, epsilon: float) -> Any:
    return f(x, shape, torch.ones_like(weight) + 0 * weight, bias, epsilon)


def without_layer_bias(f: Any, x: Any, shape: Any, weight: Any, bias: Any, epsilon: float) -> Any:
    return f(x, shape, weight, 0 * bias, epsilon)


def without_recurrent_bias(f: Any, x: Any, state: Any, weights: Any, *rest: Any) -> Any:
    wi, wh, bias, second = weights
    return f(x, state, (wi, wh, 0 * bias, second), *rest)


def without_hidden_bias(f: Any, x: Any, state: Any, weights: Any, *rest: Any) -> Any:
    wi, wh, bias, second = weights
    return f(x, state, (wi, wh, bias, 0 * second), *rest)


def with_forget_bias(f: Any, x: Any, state: Any, weights: Any, *rest: Any) -> Any:
    wi, wh, bias, second = weights
    units = len(bias) // 4
    one = torch.zeros_like(bias)
    one[units : 2 * units] = 1
    return f(x, state, (wi, wh, bias + one, second), *rest)


def padding_token(f: Any, weight: Any, tokens: Any) -> Any:
    return f(weight, tokens) * (tokens != 0)[..., None]


RESNET = "resnet56-cifar"
LSTM = "ptb-lstm-small"
STATE = (
    (
        "statistics_swapped",
        RESNET,
        "batch_norm",
        swap_statistics,
        "Inference swaps moving mean and variance",
    ),
    (
        "moving_mean_ignored",
        RESNET,
        "batch_norm",
        ignore_mean,
        "Inference takes 0 for the moving mean",
    ),
    (
        "moving_variance_ignored",
        RESNET,
        "batch_norm",
        ignore_variance,
        "Inference takes 1 for the moving variance",
    ),
    (
        "batch_statistics_in_inference",
        RESNET,
        "batch_norm",
        use_batch_statistics,
        "Inference normalises with the batch's own statistics",
    ),
    (
        "batch_norm_epsilon_1e-3",
        RESNET,
        "batch_norm",
        batch_norm_epsilon(1e-3),
        "Batch norm has epsilon 1e-3 for 1e-5, another framework's default",
    ),
    (
        "batch_norm_epsilon_1e-6",
        RESNET,
        "batch_norm",
        batch_norm_epsilon(1e-6),
        "Batch norm has epsilon 1e-6 for 1e-5",
    ),
    (
        "layer_norm_without_scale",
        "transformer-base",
        "layer_norm",
        without_layer_scale,
        "Layer norm ignores its scale",
    ),
    (
        "layer_norm_without_bias",
        "transformer-base",
        "layer_norm",
        without_layer_bias,
        "Layer norm ignores its bias",
    ),
    ("lstm_without_bias", LSTM, "lstm", without_recurrent_bias, "The LSTM ignores its bias"),
    (
        "lstm_with_forget_bias",
        LSTM,
        "lstm",
        with_forget_bias,
        "The LSTM adds 1 to the bias of its forget gate",
    ),
    (
        "gru_without_hidden_bias",
        own_network("gated"),
        "gru",
        without_hidden_bias,
        "The GRU ignores the bias of the candidate's state",
    ),
    ("token_0_is_padding", LSTM, "embedding", padding_token, "Token 0 gives a row of zeros"),
)
for name, network, function, wrong, text in STATE:
    SUITE.add(2, network, wrong_function(function, wrong), text, name=name)

TEXTS = (
    (
        "conv_without_bias",
        "lenet5",
        "conv",
        'p["conv2__bias"]',
        '0 * p["conv2__bias"]',
        "The second convolution has no bias",
    ),
    (
        "dense_without_bias",
        "lenet5",
        "dense",
        'p["dense2__bias"]',
        '0 * p["dense2__bias"]',
        "The second dense layer has no bias",
    ),
    (
        "positions_ignored",
        "transformer-base",
        "positions",
        " + ",
        " + 0 * ",
        "The positions are not added",
    ),
    (
        "embedding_scale_ignored",
        "transformer-base",
        "scale",
        " * ",
        " * 1.0 + 0 * ",
        "Embeddings are not multiplied by the root of their width",
    ),
)
for name, network, op, old, new, text in TEXTS:
    SUITE.add(2, network, wrong_text(op, old, new), text, name=name)
