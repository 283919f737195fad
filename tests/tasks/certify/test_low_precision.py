"""Each rounding that a low precision must or must not make shows by itself, in PyTorch's bf16."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from steptime import plugins
from steptime.core.case import Case
from steptime.frameworks import numpy as reference
from steptime.frameworks.pytorch import program as programs
from steptime.frameworks.pytorch.ops import FUNCTIONS
from steptime.frameworks.pytorch.program import PytorchProgram
from steptime.graph import Net, Optimizer, Work, adam, momentum
from steptime.tasks.certify.evidence import Lowering
from steptime.tasks.certify.low_precision import low_precision_comparisons
from steptime.tasks.certify.products import (
    Products,
    compute_products,
    round_to_bits,
    run_products,
    short_values,
    truncate_to_bits,
)

BF16 = Case(workload="probe", framework="pytorch", precision="bf16", phase="training", threads=1)


def network_with_all_ops(optimizer: Optimizer) -> Work:
    net = Net("all")
    x = net.batch_norm(net.conv(net.input(3, 8, 8), 4, 3))
    graph = net.graph(net.dense(net.layer_norm(net.dense(net.flatten(x), 16)), 10))
    return Work(graph, {}, {}, optimizer)


def wrong_places(optimizer: Optimizer | None = None, covers: str = "training") -> str:
    lower = Lowering(plugins.load("frameworks", "pytorch"), BF16)
    work = network_with_all_ops(optimizer or adam(1e-3))
    comparisons = low_precision_comparisons(lower, work, covers=covers)
    assert len(comparisons) > 5
    return "; ".join(entry.where for entry in comparisons if entry.share > 1)


def test_round_to_bits_rounds_to_fp16_as_numpy_does() -> None:
    values = np.random.default_rng(0).standard_normal(1000)
    np.testing.assert_array_equal(round_to_bits(values, 11), values.astype(np.float16))


def test_round_to_bits_rounds_to_bf16_as_pytorch_does() -> None:
    values = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    rounded = torch.from_numpy(values).bfloat16().double().numpy()
    np.testing.assert_array_equal(round_to_bits(values.astype(float), 8), rounded)


def test_truncate_to_bits_makes_no_value_larger() -> None:
    values = np.random.default_rng(0).standard_normal(1000)
    truncated = truncate_to_bits(values, 8)
    assert (np.abs(truncated) <= np.abs(values)).all()
    assert (np.abs(truncated - values) < np.abs(values) * 2.0**-7).all()


@pytest.mark.parametrize("phase", ["inference", "training"])
@pytest.mark.parametrize("kind", ["dense", "conv"])
def test_compute_products_equals_the_reference(kind: str, phase: str) -> None:
    rng = np.random.default_rng(1)
    products = Products(
        kind,
        inputs=short_values(rng, (6, 5)),
        target=np.arange(6) % 4,
        second=short_values(rng, (4, 7)),
        first=short_values(rng, (7, 5)),
    )
    case = Case(workload="probe", framework="numpy", precision="fp64")
    values = run_products(Lowering(reference, case), products, phase)
    computed = compute_products(products, phase)
    assert values.keys() == computed.keys()
    for name, value in values.items():
        np.testing.assert_allclose(value, computed[name], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("optimizer", [adam(1e-3), momentum(0.05, weight_decay=1e-4)])
def test_comparisons_pass_right_lowering(optimizer: Optimizer) -> None:
    assert wrong_places(optimizer) == ""


def test_comparisons_are_of_low_precisions_only() -> None:
    case = Case(workload="probe", framework="numpy", precision="fp64")
    work = network_with_all_ops(adam(1e-3))
    assert low_precision_comparisons(Lowering(reference, case), work, covers="training") == []


def wide(function: Any, x: Any, *rest: Any) -> Any:
    """In fp32, whatever the operands are in."""
    tensors = [value.float() if torch.is_tensor(value) else value for value in rest]
    with torch.autocast("cpu", enabled=False):
        return function(x.float(), *tensors)


def replace_function(monkeypatch: pytest.MonkeyPatch, name: str, wrong: Any) -> None:
    original = FUNCTIONS[name]
    monkeypatch.setitem(FUNCTIONS, name, lambda *values: wrong(original, *values))


def test_comparisons_see_activations_that_stay_fp32(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_function(monkeypatch, "conv2d", wide)
    places = wrong_places(covers="inference")
    assert "conv, inference: rounding of activations" in places and "dense" not in places


def test_comparisons_see_weights_that_stay_fp32(monkeypatch: pytest.MonkeyPatch) -> None:
    def rounded_after(function: Any, x: Any, *weights: Any) -> Any:
        return wide(function, x.bfloat16(), *weights).bfloat16()

    replace_function(monkeypatch, "linear", rounded_after)
    places = wrong_places()
    assert "dense, training: rounding of weights" in places and "conv" not in places


def test_comparisons_see_sums_in_low_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    def linear(function: Any, x: Any, weight: Any, bias: Any) -> Any:
        total = torch.zeros(1, dtype=torch.bfloat16)
        for first in range(0, x.shape[-1], 64):
            block = slice(first, first + 64)
            total = total + wide(function, x[..., block], weight[:, block]).bfloat16()
        return total + bias.bfloat16()

    replace_function(monkeypatch, "linear", linear)
    assert "outputs, 16 rows of 16384" in wrong_places(covers="inference")


def test_comparisons_see_layer_norm_in_low_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    def layer_norm(function: Any, x: Any, shape: Any, weight: Any, bias: Any, epsilon: Any) -> Any:
        x = x.bfloat16()
        offset = x - x.mean(-1, keepdim=True)
        variance = offset.square().mean(-1, keepdim=True)
        return offset * (variance + epsilon).rsqrt() * weight + bias

    replace_function(monkeypatch, "layer_norm", layer_norm)
    assert wrong_places(covers="inference") == "layer norm: mean and variance"


def test_comparisons_see_batch_norm_in_low_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    def batch_norm(function: Any, x: Any, *rest: Any) -> Any:
        mean = x.bfloat16().mean((0, 2, 3), keepdim=True).float()
        return function(x - x.mean((0, 2, 3), keepdim=True) + mean, *rest)

    replace_function(monkeypatch, "batch_norm", batch_norm)
    assert wrong_places() == "batch norm: mean of the batch"


def test_comparisons_see_loss_in_low_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    original = programs.cross_entropy

    def cross_entropy(output: Any, target: Any) -> Any:
        return original(output.bfloat16().log_softmax(-1), target)

    monkeypatch.setattr(programs, "cross_entropy", cross_entropy)
    assert "loss" in wrong_places()


@pytest.mark.parametrize("optimizer", [adam(1e-3), momentum(0.05)])
def test_comparisons_see_optimizer_state_in_low_precision(
    optimizer: Optimizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = PytorchProgram._train

    def train(self: Any) -> Any:
        loss = original(self)
        for state in self.optimizer.state.values():
            for name, value in state.items():
                if name != "step" and torch.is_tensor(value):
                    state[name] = value.bfloat16().float()
        return loss

    monkeypatch.setattr(PytorchProgram, "_train", train)
    assert wrong_places(optimizer) == "optimizer state"


def test_comparisons_see_a_step_that_moves_no_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    def train(self: Any) -> Any:
        return self.loss(self.input, self.target)

    monkeypatch.setattr(PytorchProgram, "_train", train)
    assert "optimizer state: no weight moves" in wrong_places()
