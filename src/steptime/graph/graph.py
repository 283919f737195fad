"""A network as data: layers in order, and what follows from them alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from steptime.core.errors import WrongGraph, unknown
from steptime.graph import costs
from steptime.graph.fingerprint import fingerprint
from steptime.graph.layer import Layer, connect
from steptime.graph.op import Initializer, Weight
from steptime.graph.ops import OPS, Input


@dataclass(frozen=True)
class Graph:
    """Layers in the order in which they were added, which is a valid order of computation."""

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
        """By canonical name. A tied weight appears once, as the layer that owns it has it."""
        weights: dict[str, Weight] = {}
        for layer in self.layers:
            # The owner comes before all layers that use its weight.
            for name, weight in layer.weights.items():
                weights.setdefault(name, weight)
        return weights

    @property
    def trainable_parameters(self) -> int:
        return costs.count_trainable(self.weights.values())

    @property
    def stored_parameters(self) -> int:
        return costs.count_stored(self.weights.values())

    @cached_property
    def with_input_gradient(self) -> frozenset[str]:
        """Names of the layers whose inputs get a gradient in a backward pass."""
        return costs.layers_with_input_gradient(self.layers)

    def layer_flops(self, layer: Layer) -> tuple[int, int]:
        """Forward and backward FLOPs of one sample."""
        return costs.layer_flops(layer, input_gradient=layer.name in self.with_input_gradient)

    def least_flops(self, *, backward: bool) -> float:
        """FLOPs of one sample if every layer uses the fastest algorithm."""
        total = 0.0
        for layer in self.layers:
            forward_flops, backward_flops = self.layer_flops(layer)
            flops = forward_flops + backward_flops if backward else forward_flops
            total += flops * layer.op.least_flops_share(*layer.input_shapes)
        return total

    @property
    def forward_flops(self) -> int:
        return sum(self.layer_flops(layer)[0] for layer in self.layers)

    @property
    def backward_flops(self) -> int:
        return sum(self.layer_flops(layer)[1] for layer in self.layers)

    def layer_bytes(self, layer: Layer, batch: int = 1, item: int = 4) -> int:
        """The least that a forward pass of this layer must move; `item` is bytes per number."""
        return costs.layer_bytes(layer, batch, item)

    def forward_bytes(self, batch: int = 1, item: int = 4) -> int:
        return sum(self.layer_bytes(layer, batch, item) for layer in self.layers if layer.inputs)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the structure; see `graph.fingerprint`."""
        return fingerprint(self.layers)

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON; `from_dict` reads it back."""
        return {
            "name": self.name,
            "fingerprint": self.fingerprint,
            "output": self.output,
            "layers": [_layer_entry(layer) for layer in self.layers],
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Graph:
        """Checks as the builder does: a file written by hand gets the same error messages."""
        layers: dict[str, Layer] = {}
        try:
            name = values["name"]
            output = values["output"]
            for entry in values["layers"]:
                layers[entry["name"]] = _read_layer(entry, layers, name)
        except KeyError as problem:
            raise WrongGraph(
                f"A graph's JSON lacks {problem}; `Graph.to_dict` shows what belongs there."
            ) from None
        # Two entries of one name would have replaced each other in the dictionary.
        if len(layers) != len(values["layers"]) or output not in layers:
            raise WrongGraph(
                f"{name}: every layer needs its own name, "
                f"and the output {output!r} must be one of them."
            )
        graph = assemble(name, list(layers.values()), output)
        # A file written by hand may leave the fingerprint out.
        if values.get("fingerprint", graph.fingerprint) != graph.fingerprint:
            raise WrongGraph(
                f"{name}: the fingerprint says {values['fingerprint']}, "
                f"the layers {graph.fingerprint}; one of them was changed by hand."
            )
        return graph


def assemble(name: str, layers: Sequence[Layer], output: str) -> Graph:
    """A graph, if it is complete: one input, and every layer leads to the output."""
    inputs = [layer.name for layer in layers if isinstance(layer.op, Input)]
    if len(inputs) != 1:
        names = ", ".join(inputs) or "none"
        raise WrongGraph(f"{name}: a network has one input, found {len(inputs)}: {names}.")
    # An unused layer would count in FLOPs and parameters, though a compiler may remove it.
    used = {output}
    for layer in layers:
        used.update(layer.inputs)
    for layer in layers:
        if layer.name not in used:
            raise WrongGraph(
                f"{name}: layer {layer.name!r} {layer.shape} leads nowhere; "
                "use its output or remove it."
            )
    return Graph(name, tuple(layers), output)


def _layer_entry(layer: Layer) -> dict[str, Any]:
    return {
        "name": layer.name,
        "op": layer.op.name,
        "inputs": list(layer.inputs),
        "settings": asdict(layer.op),
        "shape": list(layer.shape),
    }


def _read_layer(entry: dict[str, Any], earlier: dict[str, Layer], network: str) -> Layer:
    name = entry["name"]
    where = f"{network}: layer {name!r}: "
    op = entry["op"]
    if op not in OPS:
        raise WrongGraph(str(unknown("layer op", op, OPS, where)))
    for source in entry["inputs"]:
        if source not in earlier:
            raise WrongGraph(str(unknown("earlier layer", source, earlier, where)))
    settings = {setting: _from_json(value) for setting, value in entry["settings"].items()}
    inputs = [earlier[source] for source in entry["inputs"]]
    try:
        # Unknown and missing settings are arguments that the dataclass rejects.
        layer_op = OPS[op](**settings)
    except TypeError as problem:
        raise WrongGraph(f"{where}its settings do not fit a {op}: {problem}.") from None
    return connect(layer_op, inputs, name=name, network=network)


def _from_json(value: Any) -> Any:
    """JSON has lists for an op's tuples, and objects for its initializers."""
    if isinstance(value, dict):
        return Initializer(**value)
    if isinstance(value, list | tuple):
        return tuple(_from_json(inner) for inner in value)
    return value
