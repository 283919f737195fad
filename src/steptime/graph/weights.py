"""Weights by canonical name: initial ones from a seed, equal for all frameworks, and files."""

from __future__ import annotations

import itertools
import math
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steptime.core.errors import NotInstalled, SteptimeError, unknown
from steptime.graph.graph import Graph
from steptime.graph.op import Weight
from steptime.store.atomic import atomic_write

# Numbers that are drawn at once.
PART = 1 << 14


def initial_weights(graph: Graph, seed: int) -> dict[str, NDArray[np.float32]]:
    """Each weight has its own random stream: a layer added at the end changes no other weight."""

    def draw(index: int, weight: Weight) -> NDArray[np.float32]:
        return _draw(weight, np.random.default_rng([seed, index]))

    # NumPy draws outside of Python's lock.
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        arrays = pool.map(draw, itertools.count(), graph.weights.values())
        return dict(zip(graph.weights, arrays, strict=True))


def _draw(weight: Weight, rng: np.random.Generator) -> NDArray[np.float32]:
    distribution = weight.initializer.distribution
    scale = weight.initializer.scale
    if distribution == "constant":
        return np.full(weight.shape, scale, np.float32)
    if distribution == "sinusoids":
        return (scale * _sinusoids(*weight.shape)).astype(np.float32)
    values = np.empty(math.prod(weight.shape), np.float32)
    if distribution == "uniform":
        _draw_uniform(values, scale, rng)
    else:
        _draw_truncated_normal(values, scale, rng)
    return values.reshape(weight.shape)


def _draw_uniform(values: NDArray[np.float32], scale: float, rng: np.random.Generator) -> None:
    for values_part in _parts(values):
        values_part[:] = rng.uniform(-scale, scale, len(values_part))


def _draw_truncated_normal(
    values: NDArray[np.float32], scale: float, rng: np.random.Generator
) -> None:
    """Values beyond two deviations are drawn again."""
    outside_parts = []
    start = 0
    for values_part in _parts(values):
        drawn = rng.standard_normal(len(values_part))
        values_part[:] = scale * drawn
        outside_parts.append(start + np.flatnonzero(np.abs(drawn) > 2))
        start += len(values_part)
    outside = np.concatenate(outside_parts)
    while outside.size:
        drawn = rng.standard_normal(outside.size)
        values[outside] = scale * drawn
        outside = outside[np.abs(drawn) > 2]


def _parts(values: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    """Views of it. To touch new memory takes longer than to draw, and float64 takes twice as
    much, so it is used again."""
    return [values[start : start + PART] for start in range(0, len(values), PART)]


def _sinusoids(length: int, width: int) -> NDArray[np.float64]:
    """Vaswani et al., 2017: wave lengths from 2π to 20000π, sine and cosine in turn."""
    wave_lengths = 10000 ** (np.arange(0, width, 2) / width)
    angles = np.arange(length)[:, None] / wave_lengths
    pairs = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    return pairs.reshape(length, width)


def save(path: Path | str, weights: dict[str, Any], facts: dict[str, str] | None = None) -> None:
    """As safetensors: train in one framework, infer in any other.

    The file appears complete or not at all."""
    # A copy in row order: safetensors would write a transposed view as it lies in memory.
    arrays = {name: np.ascontiguousarray(array) for name, array in weights.items()}
    content = _safetensors().save(arrays, facts)
    try:
        with atomic_write(Path(path), private=False) as draft:
            draft.write_bytes(content)
    except OSError as problem:
        raise SteptimeError(
            f"The weights cannot be written to {path}: {problem.strerror}."
        ) from problem


def load(path: Path | str, graph: Graph | None = None) -> dict[str, NDArray[Any]]:
    """With a graph: the file must hold exactly the weights of this graph."""
    if not Path(path).is_file():
        raise SteptimeError(f"No file {str(path)!r} with weights; `save` writes one.")
    library = _safetensors()
    try:
        weights: dict[str, NDArray[Any]] = library.load_file(str(path))
    # The library's error type is not known to mypy and to old versions of the library.
    except Exception as problem:
        raise SteptimeError(f"{path} is not a safetensors file: {problem}") from problem
    if graph is not None:
        check(weights, graph, where=f"{path}: ")
    for name, array in weights.items():
        if not np.isfinite(np.asarray(array, np.float32)).all():
            raise SteptimeError(
                f"{path}: {name!r} has numbers that are not finite; its training went wrong."
            )
    return weights


def check(weights: dict[str, Any], graph: Graph, where: str = "") -> None:
    for name in weights:
        if name not in graph.weights:
            raise unknown(f"weight of {graph.name}", name, graph.weights, where)
    for name, weight in graph.weights.items():
        if name not in weights:
            raise SteptimeError(
                f"{where}{graph.name} needs the weight {name!r} of shape {weight.shape}; "
                "it is absent."
            )
        shape = tuple(weights[name].shape)
        if shape != weight.shape:
            raise SteptimeError(
                f"{where}{graph.name} needs {name!r} of shape {weight.shape}, found {shape}."
            )


def _safetensors() -> Any:
    try:
        import safetensors.numpy
    except ImportError:
        raise NotInstalled(
            "Weights are kept as safetensors; install it with: pip install safetensors"
        ) from None
    return safetensors.numpy
