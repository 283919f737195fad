"""A network as plain data: its layers, and the totals that follow from them."""

from __future__ import annotations

from typing import Any

from steptime.graph.graph import Graph
from steptime.graph.layer import Layer
from steptime.graph.network import Network
from steptime.graph.optimizer import Optimizer


def to_document(network: Network) -> dict[str, Any]:
    graph = network.graph
    return {
        "name": network.name,
        "title": network.title,
        "source": network.source,
        "optimizer": _optimizer_text(network.optimizer),
        "algorithm": network.optimizer.algorithm,
        "unit": network.unit,
        "units_per_sample": network.units_per_sample,
        "trainable_parameters": graph.trainable_parameters,
        "stored_parameters": graph.stored_parameters,
        "forward_flops": graph.forward_flops,
        "backward_flops": graph.backward_flops,
        "least_forward_flops": graph.least_flops(backward=False),
        "least_training_flops": graph.least_flops(backward=True),
        "forward_bytes": graph.forward_bytes(),
        "fingerprint": graph.fingerprint,
        "layers": [_layer_document(graph, layer) for layer in graph],
    }


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


def _optimizer_text(optimizer: Optimizer) -> str:
    texts = [optimizer.algorithm, f"rate {optimizer.rate}"]
    if optimizer.algorithm == "momentum":
        texts.append(f"momentum {optimizer.momentum}")
    if optimizer.weight_decay:
        decoupled = "decoupled " if optimizer.decoupled else ""
        texts.append(f"{decoupled}weight decay {optimizer.weight_decay}")
    return ", ".join(texts)
