"""A network with labelled batches: training, inference, forward."""

from __future__ import annotations

from typing import Any

from steptime import networks
from steptime.core.case import Case
from steptime.graph import Work
from steptime.graph.optimizer import BY_NAME


def names() -> list[str]:
    return list(networks.catalogue())


def knows(name: str) -> bool:
    return ".py:" in name or name in networks.catalogue()


def describe(case: Case) -> dict[str, Any]:
    """What the work is, for the record: two results are comparable only where these agree."""
    network = networks.load(case.workload)
    graph = network.graph
    flops = graph.forward_flops + (graph.backward_flops if case.phase == "training" else 0)
    return {
        "name": network.name,
        "fingerprint": graph.fingerprint,
        "trainable_parameters": graph.trainable_parameters,
        "stored_parameters": graph.stored_parameters,
        "unit": network.unit,
        "units_per_step": case.batch_size * network.units_per_sample,
        "flops_per_step": case.batch_size * flops,
        "optimizer": network.optimizer.kind if case.optimizer == "own" else case.optimizer,
    }


def build(case: Case) -> Work:
    from steptime.data.synthetic import synthetic_batch  # NumPy from here on
    from steptime.graph.weights import initial_weights

    network = networks.load(case.workload)
    optimizer = network.optimizer if case.optimizer == "own" else BY_NAME[case.optimizer]()
    return Work(
        graph=network.graph,
        weights=dict(initial_weights(network.graph, case.seed)),
        batch=synthetic_batch(network.graph, case.batch_size, case.seed),
        optimizer=optimizer,
    )
