"""The hash of a network's structure, by which results of equal networks are recognised."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from steptime.graph.layer import Layer

# Hexadecimal digits: 64 bits, so a collision is improbable even among millions of networks.
LENGTH = 16


def fingerprint(layers: Sequence[Layer]) -> str:
    """Names, the order in which layers were added, and initial weights do not count."""
    computed = _digests_of_values(layers)
    # What a layer computes is not enough: one layer used twice differs from two equal layers,
    # which have twice the weights. So each digest also covers the uses of the layer's output.
    uses: dict[str, list[tuple[int, str]]] = {layer.name: [] for layer in layers}
    complete: dict[str, str] = {}
    for layer in reversed(layers):
        digest = _digest([computed[layer.name], sorted(uses[layer.name])])
        complete[layer.name] = digest
        for index, name in enumerate(layer.inputs):
            # A sum reads its inputs in any order.
            position = 0 if layer.op.commutes else index
            uses[name].append((position, digest))
    return _digest(sorted(complete.values()))[:LENGTH]


def _digests_of_values(layers: Sequence[Layer]) -> dict[str, str]:
    """By layer: the digest of its op and of all that leads to it."""
    digests: dict[str, str] = {}
    for layer in layers:
        inputs = [digests[name] for name in layer.inputs]
        if layer.op.commutes:
            # a + b is the same network as b + a.
            inputs.sort()
        digests[layer.name] = _digest([layer.op.name, layer.op.structure(), inputs])
    return digests


def _digest(value: Any) -> str:
    # Sorted keys, so that the order of an op's fields does not count.
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
