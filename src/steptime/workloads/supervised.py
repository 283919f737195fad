"""A network with labelled batches: training, inference, forward."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from steptime import networks, plugins
from steptime.core.case import Case
from steptime.core.errors import SteptimeError, UnreadableFile
from steptime.graph import Work
from steptime.graph.document import to_document
from steptime.graph.optimizer import BY_NAME

if TYPE_CHECKING:
    from steptime.data.sets import Samples

LEAST_CALIBRATION_SAMPLES = 32  # of a large network
MOST_CALIBRATION_SAMPLES = 256  # of a small one
CALIBRATION_FLOPS = 1e10
# Between the seeds of two ranks: no other seeds are counted up that far.
RANK_SEEDS = 1 << 20


def names() -> list[str]:
    return list(networks.catalogue())


def knows(name: str) -> bool:
    return networks.is_user_file(name) or name in networks.catalogue()


def describe(case: Case) -> dict[str, Any]:
    """What the work is, for the record. A step is the step of all ranks.

    Two results are comparable only if these facts agree."""
    if networks.is_user_file(case.workload):
        return describe_network(case, to_document(networks.load(case.workload)))
    return describe_network(case, networks.describe(case.workload))


def describe_network(case: Case, network: dict[str, Any]) -> dict[str, Any]:
    """The same for a network that is given as plain data."""
    flops = network["forward_flops"]
    least_flops = network["least_forward_flops"]
    # The forward phase of training also counts as forward work only.
    if case.phase == "training":
        flops += network["backward_flops"]
        least_flops = network["least_training_flops"]
    samples = case.ranks * case.batch_size
    units = {unit: samples * count for unit, count in network["units_per_sample"].items()}
    facts = {
        "name": network["name"],
        "fingerprint": network["fingerprint"],
        "trainable_parameters": network["trainable_parameters"],
        "stored_parameters": network["stored_parameters"],
        "unit": network["unit"],
        "units_per_step": units,
        "flops_per_step": samples * flops,
        "least_flops_per_step": samples * least_flops,
        "optimizer": network["algorithm"] if case.optimizer == "own" else case.optimizer,
    }
    # Weights change predictions, not speed.
    if case.weights:
        facts["weights"] = digest(case.weights)
    return facts


def build(case: Case, *, rank: int = 0) -> Work:
    """Every rank starts from the same weights and has its own batch."""
    # NumPy is imported from here on, not by listing workloads.
    from steptime.data.synthetic import synthetic_batch
    from steptime.graph.weights import initial_weights, load

    network = networks.load(case.workload)
    graph = network.graph
    optimizer = network.optimizer if case.optimizer == "own" else BY_NAME[case.optimizer]()
    if case.weights:
        weights = load(case.weights, graph)
    else:
        weights = initial_weights(graph, case.seed)
    return Work(
        graph=graph,
        weights=dict(weights),
        batch=synthetic_batch(graph, case.batch_size, case.seed + rank * RANK_SEEDS),
        optimizer=optimizer,
        calibration=calibration(case) if case.precision == "int8" else (),
    )


def calibration(case: Case) -> tuple[dict[str, Any], ...]:
    """Batches of the case's size that show a quantiser the range of values.

    The first training samples if the weights are trained and the dataset is here; else
    synthetic ones of another seed than the step's batch. Small networks get more of them. They
    are the same for every batch size, so that a network is quantised alike."""
    from steptime.data.synthetic import synthetic_batch
    from steptime.graph.batches import batches_of_size

    graph = networks.load(case.workload).graph
    # The forward passes of calibration should cost about the same for all networks.
    affordable = int(CALIBRATION_FLOPS // max(graph.forward_flops, 1))
    count = min(max(affordable, LEAST_CALIBRATION_SAMPLES), MOST_CALIBRATION_SAMPLES)
    batches = _batches(case, "train") if case.weights else None
    if batches is None:
        batches = iter([synthetic_batch(graph, count, case.seed + 1)])
    return tuple(batch for batch, _ in batches_of_size(batches, case.batch_size, count))


def data_set(case: Case) -> ModuleType:
    """The plugin of the dataset that the case's network learns from."""
    name = networks.load(case.workload).data
    if not name:
        all_networks = networks.catalogue().values()
        with_data = ", ".join(network.name for network in all_networks if network.data)
        raise SteptimeError(
            f"{case.workload} names no dataset to learn from. Networks that do: {with_data}."
        )
    return plugins.load("data.sets", name)


def samples(case: Case, split: str) -> Samples:
    """The `train` or `test` split. The error says what is missing, and where to get it."""
    from steptime.data.sets import data_folder

    graph = networks.load(case.workload).graph
    split_samples: Samples = data_set(case).read(data_folder(), split, graph)
    return split_samples


def test_set(case: Case) -> Iterator[dict[str, Any]] | None:
    """All test samples in order, in batches of the case's size; the last may be smaller.

    None: the dataset is not here."""
    return _batches(case, "test")


def _batches(case: Case, split: str) -> Iterator[dict[str, Any]] | None:
    from steptime.data.sets import NoSet

    if not networks.load(case.workload).data:
        return None
    try:
        return samples(case, split).batches(case.batch_size, rest=True)
    except NoSet:
        return None


def digest(path: str) -> str:
    # A pipe or a device would be read without end.
    if os.path.exists(path) and not os.path.isfile(path):
        raise UnreadableFile(f"The weights {path!r} are no ordinary file.")
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as problem:
        reason = f"The weights {path!r} cannot be read: {problem.strerror}."
        raise UnreadableFile(reason) from None
