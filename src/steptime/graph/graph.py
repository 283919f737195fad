"""A network as data: layers in order, with what follows from them alone: counts, costs, fingerprint."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from math import prod
from typing import Any

from steptime.core.errors import WrongGraph, unknown
from steptime.graph.layer import Layer, connect
from steptime.graph.op import Initial, Weight
from steptime.graph.ops import OPS, Input


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
        return next(layer for layer in self.layers if isinstance(layer.op, Input))

    @cached_property
    def weights(self) -> dict[str, Weight]:
        """Lent ones once, as their owner has them: it comes first."""
        found: dict[str, Weight] = {}
        for layer in self.layers:
            for name, weight in layer.weights.items():
                found.setdefault(name, weight)
        return found

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
        flops = layer.op.flops(*layer.input_shapes)
        backward = flops.weight_gradient + (
            flops.input_gradient if layer.name in self.learns_before else 0
        )
        return flops.forward, backward

    @property
    def forward_flops(self) -> int:
        return sum(self.layer_flops(layer)[0] for layer in self.layers)

    @property
    def backward_flops(self) -> int:
        return sum(self.layer_flops(layer)[1] for layer in self.layers)

    def layer_bytes(self, layer: Layer, batch: int = 1, item: int = 4) -> int:
        """What a forward pass must move at the least: inputs and weights read once, outputs written once. Of a lender's
        output nothing is read."""
        read = [
            shape for place, shape in enumerate(layer.input_shapes) if place != layer.op.borrows
        ]
        values = sum(batch * prod(shape) for shape in (*read, layer.shape))
        return item * (values + layer.op.weights_read(batch, *layer.input_shapes))

    def forward_bytes(self, batch: int = 1, item: int = 4) -> int:
        return sum(self.layer_bytes(layer, batch, item) for layer in self.layers if layer.inputs)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the structure. Names, the order in which layers were written, and initial weights do not count."""
        before: dict[str, str] = {}  # what a layer computes
        for layer in self.layers:
            inputs = [before[name] for name in layer.inputs]
            ordered = sorted(inputs) if layer.op.commutes else inputs
            before[layer.name] = _digest([layer.op.name, layer.op.structure(), ordered])
        # And who uses it: tells one layer used twice from two equal layers, which have twice the weights.
        uses: dict[str, list[tuple[int, str]]] = {name: [] for name in before}
        whole: dict[str, str] = {}
        for layer in reversed(self.layers):
            whole[layer.name] = _digest([before[layer.name], sorted(uses[layer.name])])
            for place, name in enumerate(layer.inputs):
                uses[name].append((0 if layer.op.commutes else place, whole[layer.name]))
        return _digest(sorted(whole.values()))[:16]

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON; `from_dict` reads it back."""
        return {
            "name": self.name,
            "fingerprint": self.fingerprint,
            "output": self.output,
            "layers": [
                {
                    "name": layer.name,
                    "op": layer.op.name,
                    "inputs": list(layer.inputs),
                    "settings": asdict(layer.op),
                    "shape": list(layer.shape),
                }
                for layer in self.layers
            ],
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Graph:
        """Checks as the builder does: a file written by hand gets the same sentences."""
        try:
            layers: dict[str, Layer] = {}
            name, output = values["name"], values["output"]
            for entry in values["layers"]:
                layers[entry["name"]] = _read_layer(entry, layers, name)
        except KeyError as problem:
            raise WrongGraph(
                f"A graph's JSON lacks {problem}; `Graph.to_dict` shows what belongs there."
            ) from None
        if len(layers) != len(values["layers"]) or output not in layers:
            raise WrongGraph(
                f"{name}: every layer needs its own name, and the output {output!r} must be one of them."
            )
        graph = assemble(name, list(layers.values()), output)
        if values.get("fingerprint", graph.fingerprint) != graph.fingerprint:
            raise WrongGraph(
                f"{name}: the fingerprint says {values['fingerprint']}, the layers {graph.fingerprint}; "
                "one of them was changed by hand."
            )
        return graph


def assemble(name: str, layers: Sequence[Layer], output: str) -> Graph:
    """A graph, if it is whole: one input, and every layer leads to the output."""
    inputs = [layer.name for layer in layers if isinstance(layer.op, Input)]
    if len(inputs) != 1:
        raise WrongGraph(
            f"{name}: a network has one input, found {len(inputs)}: {', '.join(inputs) or 'none'}."
        )
    used = {output}.union(*(layer.inputs for layer in layers))
    for layer in layers:
        if layer.name not in used:
            raise WrongGraph(
                f"{name}: layer {layer.name!r} {layer.shape} leads nowhere; use its output or remove it."
            )
    return Graph(name, tuple(layers), output)


def _read_layer(entry: dict[str, Any], known: dict[str, Layer], network: str) -> Layer:
    name, settings = entry["name"], entry["settings"]
    where = f"{network}: layer {name!r}: "
    if entry["op"] not in OPS:
        raise WrongGraph(str(unknown("layer op", entry["op"], OPS, where)))
    for source in entry["inputs"]:
        if source not in known:
            raise WrongGraph(str(unknown("earlier layer", source, known, where)))
    try:
        op = OPS[entry["op"]](**{setting: _tuples(value) for setting, value in settings.items()})
    except TypeError as problem:
        raise WrongGraph(f"{where}its settings do not fit a {entry['op']}: {problem}.") from None
    return connect(op, [known[source] for source in entry["inputs"]], name=name, network=network)


def _tuples(value: Any) -> Any:
    """JSON has lists where ops have tuples, and objects where they have initial laws."""
    if isinstance(value, dict):
        return Initial(**value)
    return tuple(_tuples(inner) for inner in value) if isinstance(value, list | tuple) else value


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
