"""A network with labelled batches: training, inference, forward."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from steptime import networks, plugins
from steptime.core.case import Case
from steptime.core.errors import SteptimeError
from steptime.graph import Work
from steptime.graph.optimizer import BY_NAME

if TYPE_CHECKING:
    from steptime.data.sets import Samples

CALIBRATION_SAMPLES = (32, 256)  # of a large network, and of a small one
CALIBRATION_FLOPS = 1e10
RANK_SEEDS = 1 << 20  # from one rank's to the next: far from those that are counted up


def names() -> list[str]:
    return list(networks.catalogue())


def knows(name: str) -> bool:
    return ".py:" in name or name in networks.catalogue()


def describe(case: Case) -> dict[str, Any]:
    """What the work is, for the record: two results are comparable only where these agree. A step is of all ranks."""
    network = networks.load(case.workload)
    graph = network.graph
    flops = graph.forward_flops + (graph.backward_flops if case.phase == "training" else 0)
    samples = case.ranks * case.batch_size
    return {
        "name": network.name,
        "fingerprint": graph.fingerprint,
        "trainable_parameters": graph.trainable_parameters,
        "stored_parameters": graph.stored_parameters,
        "unit": network.unit,
        "units_per_step": {
            unit: samples * count for unit, count in network.units_per_sample.items()
        },
        "flops_per_step": samples * flops,
        "optimizer": network.optimizer.algorithm if case.optimizer == "own" else case.optimizer,
        **(
            {"weights": digest(case.weights)} if case.weights else {}
        ),  # matters to predictions, not to speed
    }


def build(case: Case, *, rank: int = 0) -> Work:
    """Every rank starts from the same weights and has a batch of its own."""
    from steptime.data.synthetic import synthetic_batch  # NumPy from here on
    from steptime.graph.weights import initial_weights, load

    network = networks.load(case.workload)
    optimizer = network.optimizer if case.optimizer == "own" else BY_NAME[case.optimizer]()
    return Work(
        graph=network.graph,
        weights=dict(
            load(case.weights, network.graph)
            if case.weights
            else initial_weights(network.graph, case.seed)
        ),
        batch=synthetic_batch(network.graph, case.batch_size, case.seed + rank * RANK_SEEDS),
        optimizer=optimizer,
        calibration=calibration(case) if case.precision == "int8" else (),
    )


def calibration(case: Case) -> tuple[dict[str, Any], ...]:
    """Batches of the case's size that show a quantiser the range of values: the first training samples where weights
    are trained and the set is here, else drawn from other seeds than the step's batch. More of small networks."""
    from steptime.data.synthetic import synthetic_batch

    graph, size = networks.load(case.workload).graph, case.batch_size
    least, most = CALIBRATION_SAMPLES
    count = min(max(int(CALIBRATION_FLOPS // max(graph.forward_flops, 1)), least), most)
    batches = _batches(case, "train") if case.weights else None
    if batches is None:
        batches = (
            synthetic_batch(graph, size, seed)
            for seed in range(case.seed + 1, case.seed + count + 1)
        )
    return tuple(islice(batches, max(1, count // size)))


def data_set(case: Case) -> Any:
    """What the shelf says of the set that the case's network learns from."""
    name = networks.load(case.workload).data
    if not name:
        with_sets = ", ".join(
            network.name for network in networks.catalogue().values() if network.data
        )
        raise SteptimeError(
            f"{case.workload} names no data set to learn from. Networks that do: {with_sets}."
        )
    return plugins.load("data.sets", name)


def samples(case: Case, part: str) -> Samples:
    """The `train` or `test` part of its set; a sentence says what is missing, and where to get it."""
    from steptime.data.sets import folder

    found: Samples = data_set(case).read(folder(), part, networks.load(case.workload).graph)
    return found


def test_set(case: Case) -> Iterator[dict[str, Any]] | None:
    """All real test samples in order, in batches of the case's size with a smaller one at the end; None where the set
    is not here."""
    return _batches(case, "test", rest=True)


def _batches(case: Case, part: str, *, rest: bool = False) -> Iterator[dict[str, Any]] | None:
    from steptime.data.sets import NoSet

    if not networks.load(case.workload).data:
        return None
    try:
        return samples(case, part).batches(case.batch_size, rest=rest)
    except NoSet:
        return None


def digest(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as problem:
        raise SteptimeError(f"The weights {path!r} cannot be read: {problem.strerror}.") from None
