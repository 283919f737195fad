"""Which networks a certificate looks at: the network itself, and for training a reduced copy.

Training is proved on the copy if the network is slow or has repeats. A deep network amplifies
rounding until the bounds of its gradients mean nothing, and its reference takes minutes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from steptime.core.case import Case
from steptime.graph import Graph, Work
from steptime.graph.batches import Batch
from steptime.graph.reduced import reduced
from steptime.graph.weights import initial_weights
from steptime.tasks.certify.probes import probing_batch, shift_weights, shifted_weights

WHOLE = "whole"
REDUCED = "reduced"
# How fast the reference is on a slow core.
FLOPS_PER_SECOND = 20e9
SECONDS_PER_WEIGHT = 25e-9
FAST_SECONDS = 0.3
# Of one training step of the reference, above which training is proved on the reduced copy.
SLOW_SECONDS = 0.15
# Above which the whole network's gradients are not compared either.
VERY_SLOW_SECONDS = 4.0


class Effort(NamedTuple):
    """How much is computed, for the reference and all frameworks."""

    steps: int  # of the trajectory
    draws: int  # of rounding errors
    trajectories: int  # draws that go on to the last step


# What is computed if a step of the reference takes fewer seconds than this.
EFFORTS = (
    (0.05, Effort(20, 5, 5)),
    (FAST_SECONDS, Effort(20, 3, 3)),
    (VERY_SLOW_SECONDS, Effort(8, 3, 1)),
    (float("inf"), Effort(1, 1, 1)),
)


@dataclass(frozen=True)
class Study:
    network: str  # WHOLE or REDUCED
    work: Work
    second: Batch
    other_weights: dict[str, Any]
    effort: Effort
    # Everything is compared, also training; else outputs, and gradients if that is affordable.
    is_complete: bool
    has_gradients: bool


def make_studies(work: Work, case: Case) -> list[Study]:
    graph = work.graph
    copy = reduced(graph)
    seconds = step_seconds(graph, case.batch_size)
    if len(copy.layers) == len(graph.layers) and seconds < SLOW_SECONDS:
        return [_make_study(WHOLE, work, case, is_complete=True)]
    return [
        _make_study(WHOLE, work, case, is_complete=False),
        _make_study(
            REDUCED,
            replace(work, graph=copy, weights=initial_weights(copy, case.seed)),
            case,
            is_complete=True,
        ),
    ]


def _make_study(network: str, work: Work, case: Case, *, is_complete: bool) -> Study:
    graph = work.graph
    size = case.batch_size if network == WHOLE else probing_batch_size(graph)
    seconds = step_seconds(graph, size)
    probing = replace(
        work,
        weights=shift_weights(graph, work.weights, case.seed),
        batch=probing_batch(graph, size, case.seed),
    )
    return Study(
        network=network,
        work=probing,
        second=probing_batch(graph, size, case.seed + 1),
        other_weights=shifted_weights(graph, case.seed + 1) if is_complete else {},
        effort=choose_effort(seconds),
        is_complete=is_complete,
        has_gradients=is_complete or seconds < VERY_SLOW_SECONDS,
    )


def probing_batch_size(graph: Graph) -> int:
    """Small, because the reference is slow, but larger than one for batch statistics."""
    return 4 if step_seconds(graph, 4) < FAST_SECONDS else 2


def choose_effort(seconds: float) -> Effort:
    return next(effort for limit, effort in EFFORTS if seconds < limit)


def step_seconds(graph: Graph, batch_size: int) -> float:
    """Of a training step of the reference, roughly."""
    flops = batch_size * (graph.forward_flops + graph.backward_flops)
    return flops / FLOPS_PER_SECOND + graph.stored_parameters * SECONDS_PER_WEIGHT
