"""A network as data: layers in order, with what follows from them alone: counts, costs, fingerprint."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from steptime.graph.kind import Kind, Shape, Weight
from steptime.graph.kinds import Input


@dataclass(frozen=True)
class Layer:
    name: str
    kind: Kind
    inputs: tuple[str, ...]
    input_shapes: tuple[Shape, ...]
    shape: Shape

    @property
    def weights(self) -> dict[str, Weight]:
        """Canonical names: 'conv1.weight'."""
        return {f"{self.name}.{part}": w for part, w in self.kind.weights(*self.input_shapes).items()}


@dataclass(frozen=True)
class Graph:
    """Layers in the order in which they were added, which is an order in which they can be computed."""

    name: str
    layers: tuple[Layer, ...]
    output: str

    def __iter__(self) -> Iterator[Layer]:
        return iter(self.layers)

    def __getitem__(self, name: str) -> Layer:
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Layer]:
        return {layer.name: layer for layer in self.layers}

    @property
    def input(self) -> Layer:
        return next(layer for layer in self.layers if isinstance(layer.kind, Input))

    @cached_property
    def weights(self) -> dict[str, Weight]:
        return {name: weight for layer in self.layers for name, weight in layer.weights.items()}

    @property
    def trainable_parameters(self) -> int:
        return sum(w.size for w in self.weights.values() if w.trainable)

    @property
    def stored_parameters(self) -> int:
        """Trainable ones and the rest that a saved model holds (moving statistics)."""
        return sum(w.size for w in self.weights.values())

    @cached_property
    def learns_before(self) -> frozenset[str]:
        """Layers with a trainable weight somewhere before them: their input needs a gradient."""
        found: set[str] = set()
        for layer in self.layers:
            if any(name in found or self._trains(name) for name in layer.inputs):
                found.add(layer.name)
        return frozenset(found)

    def _trains(self, name: str) -> bool:
        return any(w.trainable for w in self._by_name[name].weights.values())

    def layer_flops(self, layer: Layer) -> tuple[int, int]:
        """Forward and backward of one sample. What lies before the first weight gets no input gradient."""
        flops = layer.kind.flops(*layer.input_shapes)
        backward = flops.weight_gradient + (flops.input_gradient if layer.name in self.learns_before else 0)
        return flops.forward, backward

    @property
    def forward_flops(self) -> int:
        return sum(self.layer_flops(layer)[0] for layer in self.layers)

    @property
    def backward_flops(self) -> int:
        return sum(self.layer_flops(layer)[1] for layer in self.layers)

    def layer_bytes(self, layer: Layer, batch: int = 1, item: int = 4) -> int:
        """What a forward pass must move at the least: inputs and weights read once, outputs written once."""
        values = sum(batch * prod(shape) for shape in (*layer.input_shapes, layer.shape))
        return item * (values + sum(w.size for w in layer.weights.values()))

    def forward_bytes(self, batch: int = 1, item: int = 4) -> int:
        return sum(self.layer_bytes(layer, batch, item) for layer in self.layers if layer.inputs)

    @property
    def fingerprint(self) -> str:
        """Hash of the structure. Names, the order in which layers were written, and initial weights do not count."""
        hashes: dict[str, str] = {}
        for layer in self.layers:
            inputs = [hashes[name] for name in layer.inputs]
            text = [layer.kind.name, layer.kind.structure(), sorted(inputs) if layer.kind.commutes else inputs]
            hashes[layer.name] = _digest(text)
        # The sorted list tells one layer used twice from two equal layers.
        return _digest([hashes[self.output], sorted(hashes.values())])[:16]

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "fingerprint": self.fingerprint,
            "output": self.output,
            "layers": [
                {
                    "name": a.name,
                    "kind": a.kind.name,
                    "inputs": a.inputs,
                    "settings": a.kind.structure(),
                    "shape": a.shape,
                }
                for a in self.layers
            ],
        }


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
