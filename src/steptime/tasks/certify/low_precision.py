"""Low precisions: what must be rounded is rounded, and nothing else is.

In a whole network the roundings of all layers hide where each was made. The probes here have
values that the precision represents exactly, so that one kind of rounding remains to be seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from steptime.graph import Net, Optimizer, Tensor, Work
from steptime.graph.batches import Batch
from steptime.tasks.certify.evidence import Lowering, step_result
from steptime.tasks.certify.judge import Comparison, root_mean_square
from steptime.tasks.certify.products import (
    CLASSES,
    KINDS,
    Products,
    compute_products,
    round_to_bits,
    run_products,
    short_values,
    take_step,
    truncate_to_bits,
)

# Significant bits of the precisions that are examined.
BITS = {"bf16": 8, "fp16": 11}
ROWS = 16
WIDTH = 128
# Rows and features. Sums over features are of the forward pass, sums over rows of the backward.
LONG_SUMS = ((16, 16384), (2048, 16))
# A sum in fp32 is off by its last rounding. GPU libraries may round some partial sums, too.
SUM_ROUNDINGS = 6.0
# TensorFlow's sum of fp16 on the CPU rounds in many places, but loses nothing (12 roundings).
BIAS_ROUNDINGS = 32.0
# Eigen truncates to bf16.
ROUNDINGS = (round_to_bits, truncate_to_bits)
# Of the share of a rounding that shows: 1 if it was made, 0 if not.
SHARE_TOLERANCE = 0.5
# What is computed in fp32 is off by less than this share of a rounding of the low precision.
FP32_SHARE = 1 / 16
# Of values whose mean is lost if it is computed in the low precision.
LARGE_MEAN = 16.0
LOSSES = 8
STATE_STEPS = 3


def low_precision_comparisons(lower: Lowering, work: Work, *, covers: str) -> list[Comparison]:
    """Empty if the precision is not one of `BITS`."""
    bits = BITS.get(lower.case.precision)
    if bits is None:
        return []
    ops = {layer.op.name for layer in work.graph}
    phases = ["inference"] if covers == "inference" else ["inference", "training"]
    comparisons: list[Comparison] = []
    for kind in KINDS:
        if kind not in ops:
            continue
        for phase in phases:
            comparisons += _operand_comparisons(lower, kind, phase, bits)
            comparisons += _sum_comparisons(lower, kind, phase, bits)
    if "layer_norm" in ops:
        comparisons.append(_compare_layer_norm(lower, bits))
    if covers == "training":
        comparisons.append(_compare_losses(lower, bits))
        if "batch_norm" in ops:
            comparisons.append(_compare_batch_norm(lower, bits))
        if work.optimizer.algorithm != "sgd":
            comparisons.append(_compare_optimizer_state(lower, work.optimizer, bits))
    return comparisons


def _compare(where: str, error: float, bound: float) -> Comparison:
    return Comparison(error, bound, where, error / bound)


# Operands of products: rounded before they are multiplied


def _operand_comparisons(lower: Lowering, kind: str, phase: str, bits: int) -> Iterator[Comparison]:
    rng = np.random.default_rng(3)
    short = Products(
        kind,
        inputs=short_values(rng, (ROWS, WIDTH)),
        target=rng.integers(0, WIDTH, ROWS),
        second=short_values(rng, (WIDTH, WIDTH)) / 8,
        first=short_values(rng, (WIDTH, WIDTH)) / 8,
    )
    # Backward, the result of the first layer is multiplied for the gradient of the second.
    name = "outputs" if phase == "inference" else "second.weight"
    values = run_products(lower, short, phase)[name]
    exact = compute_products(short, phase)[name]
    errors = []
    for round_values in ROUNDINGS:
        rounded = compute_products(short, phase, round_hidden=partial(round_values, bits=bits))
        errors.append(abs(1 - _share_of_rounding(values, exact, rounded[name])))
    yield _compare(f"{kind}, {phase}: rounding of activations", min(errors), SHARE_TOLERANCE)

    weights = rng.standard_normal((WIDTH, WIDTH)).astype(np.float32) / 16
    long = replace(short, second=weights.astype(np.float64))
    # Backward, the second weight is multiplied on the way to the gradient of the first.
    name = "outputs" if phase == "inference" else "first.weight"
    values = run_products(lower, long, phase)[name]
    exact = compute_products(long, phase)[name]
    errors = []
    for round_values in ROUNDINGS:
        rounded = compute_products(replace(long, second=round_values(long.second, bits)), phase)
        errors.append(abs(1 - _share_of_rounding(values, exact, rounded[name])))
    yield _compare(f"{kind}, {phase}: rounding of weights", min(errors), SHARE_TOLERANCE)


def _share_of_rounding(values: Any, exact: Any, rounded: Any) -> float:
    """1: rounded in this way. 0: not. Other roundings hardly point into the same direction.

    What they have in common is that all that truncates makes everything smaller: left out."""
    direction = rounded - exact
    direction -= exact * np.sum(direction * exact) / np.sum(exact**2)
    return float(np.sum((values - exact) * direction) / np.sum(direction**2))


# Sums: in fp32, also if what is added is not


def _sum_comparisons(lower: Lowering, kind: str, phase: str, bits: int) -> list[Comparison]:
    comparisons = []
    # The outputs of few features are no long sum.
    shapes = LONG_SUMS[:1] if phase == "inference" else LONG_SUMS
    for rows, features in shapes:
        products = _long_sum(kind, rows, features)
        values = run_products(lower, products, phase)
        rounded = compute_products(products, phase, round_outputs=partial(round_to_bits, bits=bits))
        for name, exact in compute_products(products, phase).items():
            if kind == "conv" and name == "second.weight":
                # oneDNN adds up this gradient over the samples in the low precision.
                continue
            roundings = BIAS_ROUNDINGS if name == "second.bias" else SUM_ROUNDINGS
            bound = roundings * root_mean_square(round_to_bits(rounded[name], bits) - exact)
            error = root_mean_square(values[name] - exact)
            where = f"{kind}, {phase}: {name}, {rows} rows of {features}"
            scale = root_mean_square(exact)
            comparisons.append(_compare(where, error / scale, bound / scale))
    return comparisons


def _long_sum(kind: str, rows: int, features: int) -> Products:
    rng = np.random.default_rng(5)
    # A power of two, so that the weights stay exact, and outputs of about 1.
    scale = 2.0 ** -round(np.log2(features) / 2)
    return Products(
        kind,
        inputs=short_values(rng, (rows, features)),
        target=rng.integers(0, CLASSES, rows),
        second=scale * short_values(rng, (CLASSES, features)),
    )


# What is computed in fp32: normalisation, loss, the optimizer's state


def _compare_layer_norm(lower: Lowering, bits: int) -> Comparison:
    inputs = _far_from_zero((ROWS, WIDTH))
    net = Net("layer_norm_probe")
    program = lower(_through_identity(net, net.layer_norm(net.input(WIDTH)), inputs), "inference")
    offsets = inputs - inputs.mean(1, keepdims=True)
    exact = offsets / np.sqrt(np.square(offsets).mean(1, keepdims=True) + 1e-5)
    error = root_mean_square(step_result(program) - exact)
    bound = SUM_ROUNDINGS * root_mean_square(round_to_bits(exact, bits) - exact)
    return _compare("layer norm: mean and variance", error, bound)


def _compare_batch_norm(lower: Lowering, bits: int) -> Comparison:
    """The moving mean shows the batch's mean; it does not depend on other roundings."""
    inputs = _far_from_zero((ROWS, WIDTH, 1, 1))
    net = Net("batch_norm_probe")
    normalised = net.batch_norm(net.input(WIDTH, 1, 1), name="norm")
    work = _through_identity(net, net.flatten(normalised), inputs)
    program = lower(work, "forward")
    program.step()
    program.wait()
    layer = work.graph["norm"]
    momentum = float(layer.op.settings()["momentum"])
    exact = momentum * inputs.mean((0, 2, 3))
    moved = np.asarray(program.weights()["norm.running_mean"], np.float64)
    error = root_mean_square(moved - exact) / root_mean_square(exact)
    return _compare("batch norm: mean of the batch", error, FP32_SHARE * 2.0**-bits)


def _far_from_zero(shape: tuple[int, ...]) -> Any:
    """Eight bits each, with a mean that has more."""
    rng = np.random.default_rng(6)
    offsets = np.clip(np.round(8 * rng.standard_normal(shape)), -64, 64) / 8
    return LARGE_MEAN + offsets


def _through_identity(net: Net, x: Tensor, inputs: Any) -> Work:
    """A network ends with a dense layer, which here changes nothing."""
    graph = net.graph(net.dense(x, WIDTH, name="identity"))
    weights = {}
    for name, weight in graph.weights.items():
        weights[name] = np.full(weight.shape, weight.initializer.scale, np.float32)
    weights["identity.weight"] = np.eye(WIDTH, dtype=np.float32)
    weights["identity.bias"] = np.zeros(WIDTH, np.float32)
    return Work(graph, weights, _batch(inputs, np.zeros(len(inputs), int)), Optimizer("sgd", 0.0))


def _batch(inputs: Any, target: Any) -> Batch:
    return {"input": inputs.astype(np.float32), "target": target}


def _compare_losses(lower: Lowering, bits: int) -> Comparison:
    """Logits are exact, so only the loss itself can round."""
    rng = np.random.default_rng(7)
    logits = rng.integers(-64, 64, (LOSSES, WIDTH)) / 8
    target = rng.integers(0, WIDTH, LOSSES)
    net = Net("loss_probe")
    # Both samples are the same, because the mean of several would hide their roundings.
    work = _through_identity(net, net.input(WIDTH), np.stack([logits[0]] * 2))
    program = lower(work, "training")
    errors = []
    for row, of_class in zip(logits, target, strict=True):
        program.feed(_batch(np.stack([row] * 2), np.array([of_class] * 2)))
        exact = np.log(np.sum(np.exp(row))) - row[of_class]
        errors.append((step_result(program) - exact) / LARGE_MEAN)
    return _compare("loss", root_mean_square(errors), FP32_SHARE * 2.0**-bits)


def _compare_optimizer_state(lower: Lowering, rule: Optimizer, bits: int) -> Comparison:
    """After one step gradients are 0: how the next steps go on depends on the state alone."""
    rule = replace(rule, weight_decay=0.0)
    rng = np.random.default_rng(8)
    net = Net("state_probe")
    graph = net.graph(net.dense(net.input(CLASSES), CLASSES, name="dense"))
    weights = {name: np.zeros(weight.shape, np.float32) for name, weight in graph.weights.items()}
    batch = _batch(short_values(rng, (4, CLASSES)), rng.integers(0, CLASSES, 4))
    program = lower(Work(graph, weights, batch, rule), "training")
    take_step(program)
    values = [np.asarray(program.weights()["dense.weight"], np.float64)]
    program.feed(_batch(np.zeros((4, CLASSES)), batch["target"]))
    for _ in range(STATE_STEPS):
        program.step()
        program.wait()
        values.append(np.asarray(program.weights()["dense.weight"], np.float64))
    # The gradients of some weights cancel.
    has_moved = values[0] != 0
    if not has_moved.any():
        return Comparison(np.inf, 0.0, "optimizer state: no weight moves", np.inf)
    ratios = np.diff(values, axis=0)[:, has_moved] / values[0][has_moved]
    error = root_mean_square(ratios / _step_ratios(rule)[:, None] - 1)
    return _compare("optimizer state", error, FP32_SHARE * 2.0**-bits)


def _step_ratios(rule: Optimizer) -> Any:
    """How large the steps after the first are, as a share of it."""
    later = np.arange(1, STATE_STEPS + 1)
    if rule.algorithm == "momentum":
        return rule.momentum**later
    sizes = []
    first, second = rule.betas
    for decay in (first, second):
        sizes.append(decay**later * (1 - decay) / (1 - decay ** (later + 1)))
    return sizes[0] / np.sqrt(sizes[1])
