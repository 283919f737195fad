"""JAX's side of `lowering.py`: optax, one jitted step with donated state, a wait for the result."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import optax
from quadruples import Pair
from reference_models_jax import PtbLstm, Resnet50

from steptime import workloads
from steptime.core.case import Case
from steptime.frameworks import jax as framework
from steptime.graph import Work

NETWORKS: dict[str, Any] = {"resnet50": Resnet50, "ptb-lstm-small": lambda layout: PtbLstm()}
BATCH_SIZES = {"resnet50": 2, "ptb-lstm-small": 20}


def describe(options: argparse.Namespace) -> dict[str, Any]:
    return {"device": options.device or "cpu"}


def cases(options: argparse.Namespace) -> Iterator[tuple[str, Case, str | None]]:
    for name, size in BATCH_SIZES.items():
        layout = options.layout if name == "resnet50" else "nchw"
        for phase in ("training", "inference"):
            case = Case(
                workload=name,
                framework="jax",
                mode="compiled",
                phase=phase,
                device=options.device or "cpu",
                layout=layout,
                batch_size=size,
            )
            yield f"{name} {phase} {case.precision} {layout} batch {size}", case, None


def make_pair(case: Case, reference: str | None) -> Pair:
    work = workloads.load(case.workload).build(case)
    program = framework.lower(work, case)
    write = hand_written_training if case.phase == "training" else hand_written_inference
    return Pair(program.step, write(work, case), program.wait)


def clear_caches() -> None:
    jax.clear_caches()


def _place(work: Work, case: Case) -> tuple[Any, Any, Any]:
    """Network, weights and batch."""
    device = jax.devices(case.device.split(":")[0])[0]
    network = NETWORKS[case.workload](case.layout)
    inputs = work.batch["input"]
    if case.layout == "nhwc":
        inputs = inputs.transpose(0, 2, 3, 1)
    arrays = network.weights(iter(work.weights.values()))
    weights = jax.device_put(arrays, device, may_alias=False)
    target = work.batch["target"].astype(np.int32)
    batch = jax.device_put((np.ascontiguousarray(inputs), target), device)
    return network, weights, batch


def hand_written_inference(work: Work, case: Case) -> Callable[[], Any]:
    network, weights, (values, _) = _place(work, case)
    jitted = jax.jit(lambda weights, values: network(*weights, values, training=False)[0])
    return lambda: jax.block_until_ready(jitted(weights, values))


def hand_written_training(work: Work, case: Case) -> Callable[[], Any]:
    network, (trainable, moving), (values, target) = _place(work, case)
    spec = work.optimizer
    momentum = spec.momentum if spec.algorithm == "momentum" else None
    optimizer = optax.sgd(spec.rate, momentum=momentum)
    state = (trainable, moving, optimizer.init(trainable))

    def loss(trainable: Any, moving: Any, values: Any, target: Any) -> Any:
        logits, moved = network(trainable, moving, values)
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, target)
        return losses.mean(), moved

    def train(state: Any, values: Any, target: Any) -> Any:
        trainable, moving, optimizer_state = state
        differentiate = jax.value_and_grad(loss, has_aux=True)
        (value, moving), gradients = differentiate(trainable, moving, values, target)
        updates, optimizer_state = optimizer.update(gradients, optimizer_state, trainable)
        trainable = optax.apply_updates(trainable, updates)
        return (trainable, moving, optimizer_state), value

    # Donated, as our own step donates its state.
    jitted = jax.jit(train, donate_argnums=0)

    def step() -> Any:
        nonlocal state
        state, value = jax.block_until_ready(jitted(state, values, target))
        return value

    return step
