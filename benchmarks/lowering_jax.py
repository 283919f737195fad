"""JAX's side of `lowering.py`: optax, one jitted step that takes its state's memory, a wait for the result."""

from __future__ import annotations

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

NETWORKS: dict[str, Any] = {"resnet50": Resnet50, "ptb-lstm-small": lambda layout: PtbLstm()}
SIZES = {"resnet50": 2, "ptb-lstm-small": 20}


def about(options: Any) -> dict[str, Any]:
    return {"device": options.device or "cpu"}


def cases(options: Any) -> Iterator[tuple[str, Case, str | None]]:
    for name, size in SIZES.items():
        layout = options.layout if name == "resnet50" else "nchw"
        own = {
            "mode": "compiled",
            "device": options.device or "cpu",
            "layout": layout,
            "batch_size": size,
        }
        for phase in ("training", "inference"):
            case = Case(workload=name, framework="jax", phase=phase, **own)
            yield f"{name} {phase} {case.precision} {layout} batch {size}", case, None


def pair(case: Case, reference: str | None) -> Pair:
    work = workloads.load(case.workload).build(case)
    program = framework.lower(work, case)
    write = hand_written if case.phase == "training" else hand_written_inference
    return Pair(program.step, write(work, case), program.wait)


def forget() -> None:
    jax.clear_caches()


def _placed(work: Any, case: Case) -> tuple[Any, Any, Any]:
    """Network, weights and batch."""
    device = jax.devices(case.device.split(":")[0])[0]
    network = NETWORKS[case.workload](case.layout)
    inputs = work.batch["input"]
    inputs = inputs.transpose(0, 2, 3, 1) if case.layout == "nhwc" else inputs
    weights = jax.device_put(network.weights(iter(work.weights.values())), device, may_alias=False)
    batch = jax.device_put(
        (np.ascontiguousarray(inputs), work.batch["target"].astype(np.int32)), device
    )
    return network, weights, batch


def hand_written_inference(work: Any, case: Case) -> Callable[[], Any]:
    network, weights, (values, _) = _placed(work, case)
    jitted = jax.jit(lambda weights, values: network(*weights, values, training=False)[0])
    return lambda: jax.block_until_ready(jitted(weights, values))


def hand_written(work: Any, case: Case) -> Callable[[], Any]:
    network, (trained, moving), (values, target) = _placed(work, case)
    spec = work.optimizer
    rule = optax.sgd(spec.rate, momentum=spec.momentum if spec.algorithm == "momentum" else None)
    state = (trained, moving, rule.init(trained))

    def loss(trained: Any, moving: Any, values: Any, target: Any) -> Any:
        logits, moved = network(trained, moving, values)
        return optax.softmax_cross_entropy_with_integer_labels(logits, target).mean(), moved

    def train(state: Any, values: Any, target: Any) -> Any:
        trained, moving, memory = state
        (value, moving), gradients = jax.value_and_grad(loss, has_aux=True)(
            trained, moving, values, target
        )
        updates, memory = rule.update(gradients, memory, trained)
        return (optax.apply_updates(trained, updates), moving, memory), value

    jitted = jax.jit(train, donate_argnums=0)

    def step() -> Any:
        nonlocal state
        state, value = jax.block_until_ready(jitted(state, values, target))
        return value

    return step
