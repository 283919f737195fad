"""Every op's gradients against finite differences, and its values against the definition."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from steptime.frameworks.numpy.context import LoweringContext
from steptime.frameworks.numpy.ops import OPS as NUMPY_OPS
from steptime.frameworks.numpy.passes import backward, forward, loss
from steptime.graph import Net, Tensor
from steptime.graph.ops import OPS

Write = Callable[[Net], Tensor]


def image(net: Net) -> Tensor:
    """Something to learn before the layer in question, so that its input's gradient counts."""
    return net.conv(net.input(2, 7, 6), 4, 2)


def end(net: Net, x: Tensor) -> Tensor:
    return net.dense(net.flatten(x), 3)


def sequence(net: Net, width: int = 4) -> Tensor:
    return net.embedding(net.tokens(3, 5), 5, width)


def attend(net: Net, **settings: Any) -> Tensor:
    x = sequence(net)
    return net.dense(net.attention(net.dense(x, 4), net.dense(x, 4), net.tanh(x), **settings), 3)


def tied(net: Net) -> Tensor:
    """The table is used three times, and of one use only the weight counts."""
    tokens = net.tokens(5, 6)
    table = net.embedding(net.slice(tokens, 0, 2), 6, 3)
    return net.tied_dense(net.tanh(net.tied_embedding(net.slice(tokens, 2, 5), table)), table)


NETWORKS: dict[str, Write] = {
    "dense": lambda net: net.dense(net.dense(net.input(4, 3), 5), 2, bias=False),
    "conv": lambda net: end(
        net, net.conv(image(net), 4, (3, 2), stride=2, padding="same", dilation=2, groups=2)
    ),
    "max_pool": lambda net: end(net, net.max_pool(image(net), 3, stride=2, padding=1, ceil=True)),
    "average_pool": lambda net: end(
        net, net.average_pool(image(net), (3, 2), stride=2, padding=1, ceil=True)
    ),
    "global_average_pool": lambda net: net.dense(net.global_average_pool(image(net)), 3),
    "batch_norm": lambda net: end(net, net.batch_norm(image(net))),
    "relu": lambda net: net.dense(net.relu(net.dense(net.input(4), 6)), 3),
    "tanh": lambda net: net.dense(net.tanh(net.dense(net.input(4), 6)), 3),
    "sigmoid": lambda net: net.dense(net.sigmoid(net.dense(net.input(4), 6)), 3),
    "dropout": lambda net: net.dense(net.dropout(net.dense(net.input(4), 6), 0.4), 3),
    "add": lambda net: net.dense(net.add(x := net.dense(net.input(4), 6), net.tanh(x)), 3),
    "flatten": lambda net: end(net, image(net)),
    "embedding": lambda net: net.dense(net.embedding(net.tokens(6, 4), 4, 3), 5),
    "lstm": lambda net: net.dense(
        net.lstm(net.lstm(net.embedding(net.tokens(4, 6), 6, 3), 2), 3), 5
    ),
    "gru": lambda net: net.dense(net.gru(net.gru(sequence(net), 2), 3), 4),
    "rnn": lambda net: net.dense(net.rnn(net.rnn(sequence(net), 2), 3), 4),
    "rnn, relu": lambda net: net.dense(
        net.rnn(net.rnn(sequence(net), 5, relu=True), 6, relu=True), 4
    ),
    "gelu": lambda net: net.dense(net.gelu(net.dense(net.input(4), 6)), 3),
    "gelu, tanh": lambda net: net.dense(net.gelu(net.dense(net.input(4), 6), tanh=True), 3),
    "layer_norm": lambda net: net.dense(net.layer_norm(sequence(net), epsilon=0.01), 3),
    "lrn": lambda net: end(net, net.lrn(image(net), 3, alpha=2.0, beta=0.6, k=1.5)),
    "pad_channels": lambda net: end(net, net.pad_channels(image(net), 1, 2)),
    "scale": lambda net: net.dense(net.scale(net.dense(net.input(4), 6), -1.5), 3),
    "concat": lambda net: end(
        net, net.concat(x := net.conv(net.input(1, 3, 3), 2, 2), net.tanh(x), x, axis=1)
    ),
    "slice": lambda net: net.dense(net.slice(net.dense(net.input(2, 4), 6), 1, 4), 3),
    "positions": lambda net: net.dense(net.positions(sequence(net)), 3),
    "positions, fixed": lambda net: net.dense(net.positions(sequence(net), learned=False), 3),
    "attention": lambda net: attend(net, heads=2),
    "attention, causal": lambda net: attend(net, heads=1, causal=True, scale=0.8),
    "tied_embedding": tied,
    "tied_dense": lambda net: net.tied_dense(net.dense(x := sequence(net), 4), x),
}


def test_ops_are_complete_and_tested() -> None:
    assert set(NUMPY_OPS) == {name.partition(",")[0] for name in NETWORKS} == set(OPS) - {"input"}


def numeric(value: Callable[[], float], weight: Any, step: float = 1e-5) -> Any:
    """Central differences, one entry after the other."""
    gradients = np.zeros_like(weight)
    for index in np.ndindex(weight.shape):
        original = weight[index]
        weight[index] = original + step
        above = value()
        weight[index] = original - step
        gradients[index] = (above - value()) / (2 * step)
        weight[index] = original
    return gradients


@pytest.mark.parametrize("op", NETWORKS)
def test_op_gradients_equal_finite_differences(op: str, lower: Callable[..., Any]) -> None:
    program = lower(NETWORKS[op])
    graph, weights, batch = program.graph, program.weights(), program.batch

    def loss_and_gradients() -> tuple[float, dict[str, Any]]:
        # A new generator, so that dropout draws the same every time.
        context = LoweringContext(training=True, rng=np.random.default_rng(0))
        output, backwards = forward(graph, weights, batch["input"], context)
        value, gradient = loss(output, batch["target"])
        return value, backward(graph, backwards, gradient)

    _, gradients = loss_and_gradients()
    assert set(gradients) == {name for name, weight in graph.weights.items() if weight.trainable}
    for name, gradient in gradients.items():
        expected = numeric(lambda: loss_and_gradients()[0], weights[name])
        np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-9, err_msg=name)


def test_conv_is_a_sum_over_its_window(lower: Callable[..., Any]) -> None:
    program = lower(
        lambda net: net.conv(net.input(2, 5, 6), 4, (2, 3), stride=(2, 1), padding=1, groups=2)
    )
    x = np.pad(program.batch["input"], ((0, 0), (0, 0), (1, 1), (1, 1)))
    weights = program.weights()
    expected = np.zeros((3, *program.graph[program.graph.output].shape))
    for n, f, i, j in np.ndindex(*expected.shape):
        window = x[n, f // 2 : f // 2 + 1, 2 * i : 2 * i + 2, j : j + 3]
        product = (window * weights["conv1.weight"][f]).sum()
        expected[n, f, i, j] = product + weights["conv1.bias"][f]
    np.testing.assert_allclose(program.predict(program.batch), expected, atol=1e-12)


def test_average_pool_counts_only_cells_of_the_image(lower: Callable[..., Any]) -> None:
    program = lower(
        lambda net: net.average_pool(net.input(1, 3, 3), 2, padding=1, ceil=True), batch_size=1
    )
    x = np.arange(9.0).reshape(1, 1, 3, 3)
    expected = [[0.0, 1.5], [4.5, 6.0]]
    assert program.predict({"input": x})[0, 0].tolist() == expected


def test_max_pool_ignores_padding(lower: Callable[..., Any]) -> None:
    program = lower(lambda net: net.max_pool(net.input(1, 2, 2), 2, padding=1), batch_size=1)
    x = -np.ones((1, 1, 2, 2))
    assert (program.predict({"input": x}) == -1).all()


def test_max_pool_gives_the_gradient_to_the_first_of_equals(lower: Callable[..., Any]) -> None:
    graph = lower(lambda net: net.max_pool(net.input(1, 2, 2), 2), batch_size=1).graph
    _, pool_backward = NUMPY_OPS["max_pool"](
        graph["max_pool1"], {}, LoweringContext(training=True), np.zeros((1, 1, 2, 2))
    )
    assert pool_backward(np.ones((1, 1, 1, 1)))[0][0].tolist() == [[[[1.0, 0.0], [0.0, 0.0]]]]


def test_dropout_preserves_the_mean(lower: Callable[..., Any]) -> None:
    graph = lower(lambda net: net.dropout(net.input(10_000), 0.2)).graph
    context = LoweringContext(training=True, rng=np.random.default_rng(0))
    y, _ = NUMPY_OPS["dropout"](graph["dropout1"], {}, context, np.ones((1, 10_000)))
    assert set(y.flat) == {0.0, 1.25}
    assert y.mean() == pytest.approx(1, abs=0.02)


def test_batch_norm_gives_zero_mean_and_unit_variance(lower: Callable[..., Any]) -> None:
    program = lower(lambda net: net.batch_norm(net.input(2, 5, 5), epsilon=0.0))
    y, _ = forward(
        program.graph,
        program.weights(),
        3 + 2 * program.batch["input"],
        LoweringContext(training=True),
    )
    np.testing.assert_allclose(y.mean(axis=(0, 2, 3)), 0, atol=1e-12)
    np.testing.assert_allclose(y.var(axis=(0, 2, 3)), 1, atol=1e-12)


def test_lstm_follows_its_formulas(lower: Callable[..., Any]) -> None:
    program = lower(lambda net: net.lstm(net.input(3, 2), 4), batch_size=1)
    weights, x = program.weights(), program.batch["input"][0]
    h, c = np.zeros(4), np.zeros(4)
    for token in x:
        gates = (
            weights["lstm1.weight_input"] @ token
            + weights["lstm1.weight_hidden"] @ h
            + weights["lstm1.bias"]
        )
        i, f, g, o = gates.reshape(4, 4)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
    np.testing.assert_allclose(program.predict(program.batch)[0, -1], h, atol=1e-12)


def test_gru_follows_its_formulas(lower: Callable[..., Any]) -> None:
    program = lower(lambda net: net.gru(net.input(3, 2), 4), batch_size=1)
    weights = {name.removeprefix("gru1."): array for name, array in program.weights().items()}
    h = np.zeros(4)
    for token in program.batch["input"][0]:
        a = (weights["weight_input"] @ token + weights["bias"]).reshape(3, 4)
        b = (weights["weight_hidden"] @ h).reshape(3, 4)
        r, z = 1 / (1 + np.exp(-a[:2] - b[:2]))
        h = (1 - z) * np.tanh(a[2] + r * (b[2] + weights["bias_hidden"])) + z * h
    np.testing.assert_allclose(program.predict(program.batch)[0, -1], h, atol=1e-12)


@pytest.mark.parametrize("relu", [False, True])
def test_rnn_follows_its_formula(lower: Callable[..., Any], relu: bool) -> None:
    program = lower(lambda net: net.rnn(net.input(3, 2), 4, relu=relu), batch_size=1)
    weights, h = program.weights(), np.zeros(4)
    for token in program.batch["input"][0]:
        inner = (
            weights["rnn1.weight_input"] @ token
            + weights["rnn1.weight_hidden"] @ h
            + weights["rnn1.bias"]
        )
        h = np.maximum(inner, 0) if relu else np.tanh(inner)
    np.testing.assert_allclose(program.predict(program.batch)[0, -1], h, atol=1e-12)


def test_attention_follows_its_formula(lower: Callable[..., Any]) -> None:
    program = lower(
        lambda net: net.attention(
            x := net.input(4, 6), net.scale(x, 2.0), net.tanh(x), heads=2, causal=True
        )
    )
    x, y = program.batch["input"], program.predict(program.batch)
    for n, t, head in np.ndindex(3, 4, 2):
        features = x[n, :, 3 * head : 3 * head + 3]
        scores = np.exp([features[t] @ (2 * features[s]) / math.sqrt(3) for s in range(t + 1)])
        right = (scores / scores.sum()) @ np.tanh(features[: t + 1])
        np.testing.assert_allclose(y[n, t, 3 * head : 3 * head + 3], right, atol=1e-12)


def test_gelu_variants_differ_and_the_exact_one_uses_the_normal_distribution(
    lower: Callable[..., Any],
) -> None:
    exact, nearly = (
        lower(lambda net, tanh=tanh: net.gelu(net.input(3), tanh=tanh)) for tanh in (False, True)
    )
    x = np.array([[-1.0, 0.0, 2.0]])
    expected = [-0.15865525393145707, 0.0, 1.9544997361036416]
    np.testing.assert_allclose(exact.predict({"input": x})[0], expected, atol=1e-12)
    assert 1e-5 < np.abs(nearly.predict({"input": x}) - exact.predict({"input": x})).max() < 1e-3


def test_lrn_divides_by_neighbouring_channels(lower: Callable[..., Any]) -> None:
    program = lower(
        lambda net: net.lrn(net.input(4, 1, 1), 3, alpha=0.3, beta=0.5, k=2.0), batch_size=1
    )
    x = np.array([1.0, 2.0, 3.0, 4.0]).reshape(1, 4, 1, 1)
    sums = np.array(
        [1 + 4, 1 + 4 + 9, 4 + 9 + 16, 9 + 16]
    )  # of 3 channels, those outside count as 0
    np.testing.assert_allclose(
        program.predict({"input": x}).flat, x.flat / np.sqrt(2 + 0.3 / 3 * sums)
    )


def test_fixed_positions_are_sines_and_cosines_in_turn(lower: Callable[..., Any]) -> None:
    weight = lower(lambda net: net.positions(net.input(5, 4), learned=False)).weights()[
        "positions1.weight"
    ]
    right = [[math.sin(t), math.cos(t), math.sin(t / 100), math.cos(t / 100)] for t in range(5)]
    np.testing.assert_allclose(weight, right, atol=1e-7)
