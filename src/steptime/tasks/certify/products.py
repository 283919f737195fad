"""One or two layers of products whose operands the low precisions represent exactly.

Run by a framework, and computed in float64 with the roundings that are asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from steptime.core.program import Program
from steptime.graph import Net, Optimizer, Work
from steptime.tasks.certify.evidence import MOST_SKIPS, Lowering, step_result

Round = Callable[[Any], Any]

KINDS = ("dense", "conv")
CLASSES = 16


@dataclass(frozen=True)
class Products:
    """Two layers, one after the other, without the first if that is None. Biases are 0."""

    kind: str
    inputs: Any  # (rows, features)
    target: Any
    second: Any  # (classes, features)
    first: Any = None


def short_values(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """0.5 to 1 with six bits and either sign: exact in all low precisions, their sums are not."""
    return rng.choice([-1.0, 1.0], shape) * rng.integers(32, 64, shape) / 64


def round_to_bits(values: Any, bits: int) -> Any:
    mantissas, exponents = np.frexp(values)
    return np.ldexp(np.round(np.ldexp(mantissas, bits)), exponents - bits)


def truncate_to_bits(values: Any, bits: int) -> Any:
    mantissas, exponents = np.frexp(values)
    return np.ldexp(np.trunc(np.ldexp(mantissas, bits)), exponents - bits)


def run_products(lower: Lowering, products: Products, phase: str) -> dict[str, Any]:
    """Outputs of inference, or what a training step with rate 1 subtracts from each weight."""
    work = _make_work(products)
    program = lower(work, phase)
    if phase == "inference":
        return {"outputs": step_result(program)}
    take_step(program)
    after = program.weights()
    changes = {}
    for name, before in work.weights.items():
        change = np.asarray(before, np.float64) - after[name]
        changes[name] = change.reshape(len(change), -1) if change.ndim > 1 else change
    return changes


def unchanged(values: Any) -> Any:
    return values


def compute_products(
    products: Products,
    phase: str,
    *,
    round_hidden: Round = unchanged,
    round_outputs: Round = unchanged,
) -> dict[str, Any]:
    """The same in float64, but for what rounds the first layer's result, and the outputs with
    their gradient."""
    hidden = products.inputs
    if products.first is not None:
        hidden = round_hidden(hidden @ products.first.T)
    outputs = round_outputs(hidden @ products.second.T)
    if phase == "inference":
        return {"outputs": outputs}
    shares = np.exp(outputs - outputs.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    shares[np.arange(len(shares)), products.target] -= 1
    gradient = round_outputs(shares / len(shares))
    changes = {"second.weight": gradient.T @ hidden, "second.bias": gradient.sum(0)}
    if products.first is not None:
        backward = gradient @ products.second
        changes |= {"first.weight": backward.T @ products.inputs, "first.bias": backward.sum(0)}
    return changes


def take_step(program: Program) -> None:
    """Loss scaling starts high and skips steps until nothing overflows. A step that never moves a
    weight shows in what is compared."""
    before = program.weights()
    for _ in range(MOST_SKIPS):
        program.step()
        program.wait()
        after = program.weights()
        if any(not np.array_equal(before[name], after[name]) for name in before):
            return


def _make_work(products: Products) -> Work:
    net = Net("product_probe")
    rows, features = products.inputs.shape
    shape = (features,) if products.kind == "dense" else (features, 1, 1)
    x = net.input(*shape)
    weights = {}
    for name in ("first", "second"):
        weight = getattr(products, name)
        if weight is None:
            continue
        filters = len(weight)
        if products.kind == "dense":
            x = net.dense(x, filters, name=name)
        else:
            x = net.conv(x, filters, 1, name=name)
            weight = weight[:, :, None, None]
        weights[f"{name}.weight"] = weight.astype(np.float32)
        weights[f"{name}.bias"] = np.zeros(filters, np.float32)
    output = x if products.kind == "dense" else net.flatten(x)
    inputs = products.inputs.reshape(rows, *shape).astype(np.float32)
    batch = {"input": inputs, "target": products.target}
    return Work(net.graph(output), weights, batch, Optimizer("sgd", 1.0))
