"""Weights by canonical name: the initial ones from a seed, the same for every framework, and files of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steptime.core.errors import NotInstalled, SteptimeError, unknown
from steptime.graph.graph import Graph
from steptime.graph.op import Weight
from steptime.store.atomic import atomic_write


def initial_weights(graph: Graph, seed: int) -> dict[str, NDArray[np.float32]]:
    """Each weight has its own stream, so a layer added at the end leaves the others' values alone."""
    return {
        name: _draw(weight, np.random.default_rng([seed, place])).astype(np.float32)
        for place, (name, weight) in enumerate(graph.weights.items())
    }


def _draw(weight: Weight, random: np.random.Generator) -> NDArray[np.float64]:
    law, scale = weight.initial.law, weight.initial.scale
    if law == "constant":
        return np.full(weight.shape, scale)
    if law == "uniform":
        return random.uniform(-scale, scale, weight.shape)
    if law == "sinusoids":
        return scale * _sinusoids(*weight.shape)
    values = random.standard_normal(weight.shape)
    while (outside := np.abs(values) > 2).any():
        values[outside] = random.standard_normal(int(outside.sum()))
    return scale * values


def _sinusoids(length: int, width: int) -> NDArray[np.float64]:
    """Vaswani et al., 2017: wave lengths from 2π to 20000π, sine and cosine of each side by side."""
    angles = np.arange(length)[:, None] / 10000 ** (np.arange(0, width, 2) / width)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(length, width)


def save(path: Path | str, weights: dict[str, Any], facts: dict[str, str] | None = None) -> None:
    """As safetensors: train in one framework, infer in any other. The file appears whole or not at all."""
    # A copy in row order: safetensors would write a transposed view as it lies in memory.
    content = _safetensors().save(
        {name: np.ascontiguousarray(array) for name, array in weights.items()}, facts
    )
    try:
        with atomic_write(Path(path)) as draft:
            draft.write_bytes(content)
    except OSError as problem:
        raise SteptimeError(
            f"The weights cannot be written to {path}: {problem.strerror}."
        ) from problem


def load(path: Path | str, graph: Graph | None = None) -> dict[str, NDArray[Any]]:
    """With a graph: the weights must be its own, all of them and no others."""
    if not Path(path).is_file():
        raise SteptimeError(f"No file {str(path)!r} with weights; `save` writes one.")
    library = _safetensors()
    try:
        weights: dict[str, NDArray[Any]] = library.load_file(str(path))
    except (
        Exception
    ) as problem:  # the library's own error type, which mypy and old versions do not share
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
                f"{where}{graph.name} needs the weight {name!r} of shape {weight.shape}; it is absent."
            )
        if tuple(weights[name].shape) != weight.shape:
            found = tuple(weights[name].shape)
            raise SteptimeError(
                f"{where}{graph.name} needs {name!r} of shape {weight.shape}, found {found}."
            )


def _safetensors() -> Any:
    try:
        import safetensors.numpy
    except ImportError:
        raise NotInstalled(
            "Weights are kept as safetensors; install it with: pip install safetensors"
        ) from None
    return safetensors.numpy
