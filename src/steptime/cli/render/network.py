"""A network: its layers, and the totals that follow from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steptime.cli.output import echo, print_table

if TYPE_CHECKING:
    from steptime.graph import Graph, Layer, Network, Optimizer

COLUMNS = ("layer", "op", "output", "parameters", "forward FLOPs", "backward FLOPs")
COUNTS = ("parameters", "forward_flops", "backward_flops")
TOTALS = {
    "trainable_parameters": "trainable parameters",
    "stored_parameters": "stored parameters",
    "forward_flops": "forward FLOPs per sample",
    "backward_flops": "backward FLOPs per sample",
    "forward_bytes": "forward bytes, batch 1, fp32",
}


def to_document(network: Network) -> dict[str, Any]:
    graph = network.graph
    return {
        "name": network.name,
        "title": network.title,
        "source": network.source,
        "optimizer": _optimizer_text(network.optimizer),
        "unit": network.unit,
        "units_per_sample": network.units_per_sample,
        "trainable_parameters": graph.trainable_parameters,
        "stored_parameters": graph.stored_parameters,
        "forward_flops": graph.forward_flops,
        "backward_flops": graph.backward_flops,
        "forward_bytes": graph.forward_bytes(),
        "fingerprint": graph.fingerprint,
        "layers": [_layer_document(graph, layer) for layer in graph],
    }


def show(network: Network) -> None:
    document = to_document(network)
    echo(f"{document['title']}: {document['source']}")
    echo()
    rows = []
    for layer in document["layers"]:
        shape = " × ".join(map(str, layer["shape"]))
        counts = [f"{layer[name]:,}" if layer[name] else "" for name in COUNTS]
        rows.append([layer["name"], layer["op"], shape, *counts])
    print_table(COLUMNS, rows, right=COLUMNS[3:])
    echo()
    texts = {title: f"{document[name]:,}" for name, title in TOTALS.items()}
    width = max(map(len, texts.values()))
    for title, text in texts.items():
        echo(f"{title:30}{text:>{width}}")
    echo(f"{'one sample':30}{_units_text(document['units_per_sample'])}")
    echo(f"{'optimizer':30}{document['optimizer']}")
    echo(f"{'fingerprint':30}{document['fingerprint']}")


def _layer_document(graph: Graph, layer: Layer) -> dict[str, Any]:
    forward, backward = graph.layer_flops(layer)
    return {
        "name": layer.name,
        "op": layer.op.name,
        "inputs": layer.inputs,
        "shape": layer.shape,
        "parameters": _parameters(layer),
        "forward_flops": forward,
        "backward_flops": backward,
    }


def _parameters(layer: Layer) -> int:
    """Tied weights count in the layer that owns them, so that the column adds up."""
    if layer.op.tied_input is not None:
        return 0
    return sum(weight.size for weight in layer.weights.values() if weight.trainable)


def _units_text(units: dict[str, int]) -> str:
    """`1 sentence, 4 source tokens`."""
    texts = []
    for unit, count in units.items():
        noun = unit.replace("_", " ")
        # Units are named in the plural.
        if count == 1:
            noun = noun.removesuffix("s")
        texts.append(f"{count} {noun}")
    return ", ".join(texts)


def _optimizer_text(optimizer: Optimizer) -> str:
    texts = [optimizer.algorithm, f"rate {optimizer.rate}"]
    if optimizer.algorithm == "momentum":
        texts.append(f"momentum {optimizer.momentum}")
    if optimizer.weight_decay:
        decoupled = "decoupled " if optimizer.decoupled else ""
        texts.append(f"{decoupled}weight decay {optimizer.weight_decay}")
    return ", ".join(texts)
