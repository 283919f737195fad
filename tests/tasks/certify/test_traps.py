"""Mistakes that lowerings really make, made on purpose.

The certificate must see each one in the right item, and pass the right lowering."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from steptime.frameworks.numpy import normalisation, ops, optimizer
from steptime.graph import Graph, Net, Optimizer, Tensor, Work, adam, momentum
from steptime.graph.optimizer import adamw

pytestmark = pytest.mark.slow

WIDE_MARGIN = 5.0  # times the bound
Change = Callable[[Work], Work]
Bench = Any


def strided(net: Net) -> Tensor:
    return net.dense(
        net.flatten(net.tanh(net.conv(net.input(2, 8, 8), 4, 3, stride=2, padding="same"))), 5
    )


def pooled(net: Net) -> Tensor:
    return net.dense(
        net.global_average_pool(net.max_pool(net.conv(net.input(2, 9, 9), 4, 3), 2, ceil=True)), 5
    )


def neighbours(net: Net) -> Tensor:
    x = net.lrn(net.conv(net.input(2, 6, 6), 8, 3), size=5, alpha=1e-2, beta=0.75, k=1.0)
    return net.dense(net.flatten(x), 5)


def normal(net: Net) -> Tensor:
    return net.dense(
        net.flatten(net.relu(net.batch_norm(net.conv(net.input(2, 5, 5), 4, 3, bias=False)))), 5
    )


def bell(net: Net) -> Tensor:
    return net.dense(net.gelu(net.dense(net.input(8), 8)), 5)


def dropping(net: Net) -> Tensor:
    return net.dense(net.dropout(net.relu(net.dense(net.input(8), 16)), 0.2), 5)


def words(net: Net) -> Tensor:
    return net.dense(net.lstm(net.embedding(net.tokens(5, 11), 11, 6), 8), 11)


def setting(op: str, **settings: Any) -> Change:
    """Changes a setting of all layers with this op."""

    def change(work: Work) -> Work:
        values = work.graph.to_dict()
        del values["fingerprint"]
        for layer in values["layers"]:
            if layer["op"] == op:
                layer["settings"] |= settings
        return replace(work, graph=Graph.from_dict(values))

    return change


def rule(**settings: Any) -> Change:
    return lambda work: replace(work, optimizer=replace(work.optimizer, **settings))


@dataclass(frozen=True)
class Trap:
    network: Callable[[Net], Tensor]
    change: Change
    item: str  # that must fail
    optimizer: Optimizer | None = None


TRAPS = {
    "same padding, symmetric": Trap(strided, setting("conv", padding=((1, 1), (1, 1))), "outputs"),
    "pooling rounded down": Trap(pooled, setting("max_pool", ceil=False), "outputs"),
    "alpha not divided by the size": Trap(neighbours, setting("lrn", alpha=5e-2), "outputs"),
    "another k": Trap(neighbours, setting("lrn", k=2.0), "outputs"),
    "momentum of the other side": Trap(normal, setting("batch_norm", momentum=0.9), "statistics"),
    "epsilon of another framework": Trap(normal, setting("batch_norm", epsilon=1e-3), "gradients"),
    "gelu by tanh": Trap(bell, setting("gelu", tanh=True), "outputs"),
    "decay not decoupled": Trap(bell, rule(decoupled=False), "optimizer rule", adamw(1e-3)),
    "decay decoupled": Trap(
        bell, rule(decoupled=True), "optimizer rule", momentum(0.1, weight_decay=1e-4)
    ),
    "decay forgotten": Trap(bell, rule(weight_decay=0.0), "optimizer rule", adamw(1e-3)),
    "epsilon of another rule": Trap(bell, rule(epsilon=1e-7), "optimizer rule", adam(1e-3)),
    "no momentum": Trap(bell, rule(momentum=0.0), "trajectory", momentum(0.1)),
    "another rate": Trap(bell, rule(rate=1.01e-3), "optimizer step", adam(1e-3)),
}


@pytest.mark.parametrize("trap", TRAPS.values(), ids=TRAPS)
def test_certificate_sees_wrong_setting(trap: Trap, bench: Bench, mistaking: Any) -> None:
    items = bench(trap.network, trap.optimizer).items(mistaking(trap.change))
    assert not items[trap.item]["passed"]
    assert items[trap.item]["share"] > WIDE_MARGIN


@pytest.mark.parametrize("network", [strided, pooled, neighbours, normal, bell, dropping, words])
@pytest.mark.parametrize(
    "optimizer",
    [adam(1e-3), adamw(1e-3), momentum(0.1, weight_decay=1e-4)],
    ids=["adam", "adamw", "momentum"],
)
def test_certificate_passes_right_lowering(
    network: Callable[[Net], Tensor], optimizer: Optimizer, bench: Bench
) -> None:
    items = bench(network, optimizer).items()
    assert [item for item in items.values() if not item["passed"]] == []
    assert [item for item in items.values() if item["weak"]] == []
    expected = 11 + 2 * (network is dropping) + (network is normal)
    assert len(items) == expected


def test_certificate_sees_a_clipped_gradient(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    right, original = bench(bell, momentum(0.1)), optimizer.Stepper.update

    def clipped(self: Any, weights: Any, gradients: Any) -> None:
        norm = np.sqrt(sum(np.square(gradient).sum() for gradient in gradients.values()))
        small = {name: gradient / max(1.0, norm) for name, gradient in gradients.items()}
        original(self, weights, small)

    monkeypatch.setattr(optimizer.Stepper, "update", clipped)
    assert "large gradients" in failing(right.items())


def failing(items: dict[str, Any]) -> set[str]:
    return {name for name, item in items.items() if not item["passed"]}


def test_certificate_sees_flatten_with_channels_last(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = bench(strided)

    def flatten(layer: Any, weights: Any, walk: Any, x: Any) -> Any:
        turned = x.transpose(0, 2, 3, 1)
        return turned.reshape(len(x), -1), lambda gradient: (
            [gradient.reshape(turned.shape).transpose(0, 3, 1, 2)],
            {},
        )

    monkeypatch.setitem(ops.OPS, "flatten", flatten)
    assert {"outputs", "gradients"} <= failing(right.items())


def test_certificate_sees_biased_running_variance(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = bench(normal)
    monkeypatch.setattr(normalisation, "_unbiased_variance", lambda variance, x: variance)
    items = right.items()
    assert failing(items) == {"statistics"}
    assert "running_variance" in items["statistics"]["where"]


def loose(net: Net) -> Tensor:
    x = net.batch_norm(net.conv(net.input(2, 5, 5), 4, 3, bias=False), epsilon=1e-3)
    return net.dense(net.flatten(net.relu(x)), 5)


def test_certificate_sees_epsilon_outside_the_root(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, original = bench(loose), ops.OPS["batch_norm"]

    def batch_norm(layer: Any, weights: Any, walk: Any, x: Any) -> Any:
        variance = x.var(axis=(0, 2, 3)) if walk.training else weights["running_variance"]
        ratio = np.sqrt(variance + 1e-3) / (np.sqrt(variance) + 1e-3)
        return original(layer, {**weights, "weight": weights["weight"] * ratio}, walk, x)

    monkeypatch.setitem(ops.OPS, "batch_norm", batch_norm)
    assert {"outputs", "gradients"} <= failing(right.items())


def test_certificate_sees_normalisation_by_unbiased_variance(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, original = bench(normal), ops.OPS["batch_norm"]

    def batch_norm(layer: Any, weights: Any, walk: Any, x: Any) -> Any:
        count = x.size / x.shape[1]
        return original(
            layer, {**weights, "weight": weights["weight"] * np.sqrt((count - 1) / count)}, walk, x
        )

    monkeypatch.setitem(ops.OPS, "batch_norm", batch_norm)
    assert {"loss", "gradients"} <= failing(right.items())


def inside_the_root(rule: Optimizer, m: Any, s: Any, left: list[float]) -> Any:
    return m / left[0] / np.sqrt(s / left[1] + rule.epsilon)


def epsilon_hat(rule: Optimizer, m: Any, s: Any, left: list[float]) -> Any:
    """Kingma and Ba's shorter form: the rate is corrected, so epsilon is not."""
    return m * np.sqrt(left[1]) / left[0] / (np.sqrt(s) + rule.epsilon)


def uncorrected(rule: Optimizer, m: Any, s: Any, left: list[float]) -> Any:
    return m / (np.sqrt(s) + rule.epsilon)


@pytest.mark.parametrize("formula", [inside_the_root, epsilon_hat, uncorrected])
def test_certificate_sees_another_adam_formula(
    formula: Any, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = bench(bell, adam(1e-3))

    def wrong(rule: Optimizer, state: Any, gradient: Any, left: list[float]) -> Any:
        first, second = rule.betas
        state["m"] = first * state.get("m", 0.0) + (1 - first) * gradient
        state["s"] = second * state.get("s", 0.0) + (1 - second) * gradient**2
        return formula(rule, state["m"], state["s"], left)

    monkeypatch.setitem(optimizer.RULES, "adam", wrong)
    items = right.items()
    assert items["optimizer rule"]["share"] > WIDE_MARGIN
    assert items["gradients"]["passed"]


SCALED = {
    "not scaled": lambda kept, rate: kept,
    "scaled by the rate": lambda kept, rate: kept / rate,
}


@pytest.mark.parametrize("factor", SCALED.values(), ids=SCALED)
def test_certificate_sees_wrong_dropout_scale(
    factor: Any, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = bench(dropping)

    def dropout(layer: Any, weights: Any, walk: Any, x: Any) -> Any:
        rate = layer.op.settings()["rate"]
        if not (walk.training and walk.rng is not None and rate):
            return x, lambda gradient: ([gradient], {})
        kept = factor(walk.rng.random(x.shape) >= rate, rate)
        return x * kept, lambda gradient: ([gradient * kept], {})

    monkeypatch.setitem(ops.OPS, "dropout", dropout)
    assert failing(right.items()) == {"dropout", "dropout masks"}


def test_certificate_sees_dropout_drawn_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    right, original = bench(dropping), ops.OPS["dropout"]

    def dropout(layer: Any, weights: Any, walk: Any, x: Any) -> Any:
        fixed = walk.rng and np.random.default_rng(0)
        return original(layer, weights, replace(walk, rng=fixed), x)

    def unblurred(self: Any, values: Any) -> Any:
        return values

    monkeypatch.setitem(ops.OPS, "dropout", dropout)
    monkeypatch.setattr("steptime.frameworks.numpy.rounding.Rounding.__call__", unblurred)
    items = right.items()
    assert failing(items) == {"dropout", "dropout masks"}
    assert "the same in every step" in items["dropout"]["where"]


def other_order(value: Any) -> Any:
    """Input, candidate, forget, output: the order of Keras' first version."""
    entry, forget, candidate, exit_ = np.split(value, 4)
    return np.concatenate([entry, candidate, forget, exit_])


def with_forget_bias(value: Any) -> Any:
    """TensorFlow's BasicLSTMCell added 1 to what the weights say."""
    units = len(value) // 4
    return value + np.repeat([0.0, 1.0, 0.0, 0.0], units)


@pytest.mark.parametrize("order", [True, False], ids=["gate order", "forget bias"])
def test_certificate_sees_another_lstm_convention(
    order: bool, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, original = bench(words), ops.OPS["lstm"]

    def lstm(layer: Any, weights: Any, walk: Any, x: Any) -> Any:
        changed = {gate: other_order(value) for gate, value in weights.items()}
        return original(
            layer,
            changed if order else {**weights, "bias": with_forget_bias(weights["bias"])},
            walk,
            x,
        )

    monkeypatch.setitem(ops.OPS, "lstm", lstm)
    items = right.items()
    assert {"outputs", "loss", "gradients"} <= failing(items)
    assert items["outputs"]["share"] > WIDE_MARGIN
