"""Dropout in the timed training step: its masks are read out of the weights that it changes.

A probe network has a layer that learns, two dropouts side by side and a dense layer. One step of
SGD moves the dense weight by the sum over the batch of (gradient of the outputs) × (what dropout
let through). With one class more than samples, that sum can be solved for what was let through.
Then the step is computed again with these very masks: forward and backward must both have used
them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from steptime.core.program import Program
from steptime.graph import Graph, Net, Optimizer, Tensor, Work
from steptime.tasks.certify.judge import Comparison
from steptime.tasks.certify.probes import dropout_layers, dropout_rate

SAMPLES = 12
STEPS = 4
LAYERS = 2
# Shapes of the probe by rank, without the batch.
SHAPES = {1: (48,), 2: (6, 8), 3: (6, 4, 4)}
AXES = {1: ("feature",), 2: ("time", "feature"), 3: ("channel", "height", "width")}
# Of the dense weight: large enough that what goes back through it can be seen.
OUTPUT_SCALE = 0.02
REFINEMENTS = 4
# Agreement of two masks, and the share kept, in standard deviations.
SIGMAS = 6.0
# Relative error of the weights that the step changed: a wrong mask is off by a third or more.
CHANGE_TOLERANCE = 0.02


@dataclass(frozen=True)
class Drawing:
    """What dropout did in some steps: True where a value was kept."""

    masks: Any  # (steps, layers, samples, *shape)
    change_error: float  # relative, of the weights, against the same masks in float64
    changed_worst: str  # the weight with that error


def mask_probes(graph: Graph) -> dict[str, Work]:
    """One for each rank and rate of the network's own dropout layers."""
    probes = {}
    for layer in dropout_layers(graph):
        rank = len(layer.shape)
        rate = dropout_rate(layer)
        probes[f"rank {rank + 1}, rate {rate:g}"] = _mask_probe(rank, rate)
    return probes


def _mask_probe(rank: int, rate: float) -> Work:
    shape = SHAPES[rank]
    net = Net("mask_probe")
    hidden = _learning_layer(net, net.input(*shape))
    dropped = [net.flatten(net.dropout(hidden, rate)) for _ in range(LAYERS)]
    graph = net.graph(net.dense(net.concat(*dropped), SAMPLES + 1))
    rng = np.random.default_rng(2)
    signs = rng.choice([-1.0, 1.0], (SAMPLES, *shape))
    inputs = signs * rng.uniform(1.0, 2.0, (SAMPLES, *shape))
    batch = {"input": inputs.astype(np.float32), "target": np.arange(SAMPLES)}
    weights = {}
    for name, weight in graph.weights.items():
        array = OUTPUT_SCALE * rng.standard_normal(weight.shape)
        if name == f"{_weight_names(graph)[0]}.weight":
            array += np.eye(len(array)).reshape(array.shape)
        weights[name] = array.astype(np.float32)
    return Work(graph, weights, batch, Optimizer("sgd", 1.0))


def _learning_layer(net: Net, x: Tensor) -> Tensor:
    """Over channels or features: close to the identity, so that nothing comes near 0."""
    if len(x.shape) == 3:
        return net.conv(x, x.shape[0], 1)
    return net.dense(x, x.shape[-1])


def read_drawing(program: Program, work: Work) -> Drawing:
    masks = []
    worst = (0.0, "")
    for _ in range(STEPS):
        program.load(work.weights)
        program.step()
        program.wait()
        after = program.weights()
        changes = {}
        for name, before in work.weights.items():
            changes[name] = np.asarray(after[name], np.float64) - before
        mask = _solve_mask(work, changes)
        masks.append(mask)
        worst = max(worst, _compare_changes(work, mask, changes))
    return Drawing(np.stack(masks), *worst)


def _solve_mask(work: Work, changes: dict[str, Any]) -> Any:
    """(layers, samples, *shape). Refined, because the outputs depend on the mask a little."""
    learning, output = _weight_names(work.graph)
    hidden = _hidden(work, learning)
    rate = _rate(work)
    moved = -SAMPLES * changes[f"{output}.weight"]
    scaled = hidden / (1 - rate)
    passed = np.zeros((SAMPLES, LAYERS * hidden[0].size))
    for _ in range(REFINEMENTS):
        of_logits = _logit_gradients(work, passed, output)
        through = np.linalg.lstsq(of_logits.T, moved, rcond=None)[0]
        kept = np.abs(through) > np.tile(np.abs(scaled).reshape(SAMPLES, -1), LAYERS) / 2
        passed = np.where(kept, np.tile(scaled.reshape(SAMPLES, -1), LAYERS), 0.0)
    return kept.reshape(SAMPLES, LAYERS, *hidden.shape[1:]).swapaxes(0, 1)


def _compare_changes(work: Work, mask: Any, changes: dict[str, Any]) -> tuple[float, str]:
    """The largest relative error of a weight's change, and the weight's name."""
    errors = []
    for name, expected in _expected_changes(work, mask).items():
        scale = np.sqrt(np.mean(np.square(expected)))
        error = np.sqrt(np.mean(np.square(changes[name] - expected)))
        errors.append((float(error / scale) if scale else float(error), name))
    return max(errors)


def _expected_changes(work: Work, mask: Any) -> dict[str, Any]:
    """One step of SGD with rate 1 and this mask, in float64."""
    learning, output = _weight_names(work.graph)
    hidden = _hidden(work, learning)
    factors = mask.swapaxes(0, 1) / (1 - _rate(work))
    passed = (factors * hidden[:, None]).reshape(SAMPLES, -1)
    of_logits = _logit_gradients(work, passed, output) / SAMPLES
    weight = np.asarray(work.weights[f"{output}.weight"], np.float64)
    of_passed = (of_logits @ weight).reshape(factors.shape)
    of_hidden = (of_passed * factors).sum(axis=1)
    axis = _learning_axis(work)
    rows = np.moveaxis(of_hidden, axis, -1).reshape(-1, of_hidden.shape[axis])
    inputs = np.moveaxis(np.asarray(work.batch["input"], np.float64), axis, -1)
    of_matrix = rows.T @ inputs.reshape(-1, rows.shape[1])
    return {
        f"{learning}.weight": -of_matrix.reshape(work.weights[f"{learning}.weight"].shape),
        f"{learning}.bias": -rows.sum(axis=0),
        f"{output}.weight": -of_logits.T @ passed,
        f"{output}.bias": -of_logits.sum(axis=0),
    }


def _hidden(work: Work, learning: str) -> Any:
    axis = _learning_axis(work)
    matrix = np.asarray(work.weights[f"{learning}.weight"], np.float64)
    matrix = matrix.reshape(len(matrix), -1)
    inputs = np.moveaxis(np.asarray(work.batch["input"], np.float64), axis, -1)
    hidden = inputs @ matrix.T + work.weights[f"{learning}.bias"]
    return np.moveaxis(hidden, -1, axis)


def _logit_gradients(work: Work, passed: Any, output: str) -> Any:
    """Of the loss of each sample."""
    weight = np.asarray(work.weights[f"{output}.weight"], np.float64)
    logits = passed @ weight.T + work.weights[f"{output}.bias"]
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    gradients = exponentials / exponentials.sum(axis=1, keepdims=True)
    gradients[np.arange(SAMPLES), work.batch["target"]] -= 1
    return gradients


def _weight_names(graph: Graph) -> tuple[str, str]:
    """Of the layer that learns before dropout, and of the one after it."""
    with_weights = [layer for layer in graph if layer.weights]
    return with_weights[0].name, with_weights[-1].name


def _learning_axis(work: Work) -> int:
    """Channels of images, else features; counted with the batch."""
    return 1 if len(work.graph.input.shape) == 3 else -1


def _rate(work: Work) -> float:
    return dropout_rate(dropout_layers(work.graph)[0])


def mask_comparisons(drawing: Drawing, work: Work) -> list[Comparison]:
    """The step with these masks, the share that is kept, and independence along every axis."""
    error = drawing.change_error
    where = f"{drawing.changed_worst}, against a step with the same masks"
    comparisons = [Comparison(error, CHANGE_TOLERANCE, where, error / CHANGE_TOLERANCE)]
    masks = drawing.masks
    keep = 1 - _rate(work)
    kept = _compare_share(masks, keep, masks.size)
    comparisons.append(replace(kept, where=f"share of values that are kept: {masks.mean():.3f}"))
    axes = ("step", "layer", "sample", *AXES[len(work.graph.input.shape)])
    for axis, name in enumerate(axes):
        for lag in range(1, masks.shape[axis]):
            comparisons.append(_compare_neighbours(masks, axis, lag, name, keep))
    return comparisons


def _compare_neighbours(masks: Any, axis: int, lag: int, name: str, keep: float) -> Comparison:
    """Of masks drawn independently, any two agree in the same share of their values."""
    size = masks.shape[axis]
    agrees = np.take(masks, range(size - lag), axis) == np.take(masks, range(lag, size), axis)
    # Pairs share values, so only half of them count as independent.
    agreement = _compare_share(agrees, keep**2 + (1 - keep) ** 2, agrees.size // 2)
    distance = "" if lag == 1 else f", {lag} apart"
    where = f"masks that agree from {name} to {name}{distance}: {agrees.mean():.3f}"
    return replace(agreement, where=where)


def _compare_share(flags: Any, expected: float, count: int) -> Comparison:
    """The share of flags that are set, as a binomial one."""
    error = float(abs(flags.mean() - expected))
    bound = float(SIGMAS * np.sqrt(expected * (1 - expected) / count))
    return Comparison(error, bound, "", error / bound)
