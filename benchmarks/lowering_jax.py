"""Is a lowered network as fast in JAX as the same one written by hand in JAX's own idiom? In one process, in turns.

    python benchmarks/lowering_jax.py                            # ResNet-50 and an LSTM, training
    python benchmarks/lowering_jax.py --batch-size 2 --turns 6   # minutes on two cores
    python benchmarks/lowering_jax.py --only resnet50 --layout nchw

Both start from equal weights. Blocks alternate ours, theirs, theirs, ours; a ratio is of one such quadruple, below 1
where ours is faster. `results differ by` compares the losses of the first step. `--clock processor` counts the
processor's time instead of the wall's, for machines that others use too."""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import jax
import numpy as np
import optax
from reference_models_jax import PtbLstm, Resnet50

from steptime import workloads
from steptime.analysis.intervals import signed_rank
from steptime.core.case import Case
from steptime.frameworks import jax as framework

Step = Callable[[], Any]
Clock = Callable[[], float]
ALPHA, BLOCK_SECONDS = 0.05, 0.3
CLOCKS: dict[str, Clock] = {"wall": time.perf_counter, "processor": time.process_time}
NETWORKS: dict[str, Any] = {"resnet50": Resnet50, "ptb-lstm-small": lambda layout: PtbLstm()}


@dataclass(frozen=True)
class Row:
    label: str
    ours_ms: float
    theirs_ms: float
    ratio: float
    low: float
    high: float
    quadruples: int
    difference: float  # of the losses, relative: the same work
    first_ours_seconds: float
    first_theirs_seconds: float


def main() -> None:
    options = _options()
    print(json.dumps(framework.versions()))
    rows = []
    for name in (name for name in NETWORKS if options.only in name):
        rows.append(_measure(_case(name, options), options.turns, CLOCKS[options.clock]))
        print(_line(rows[-1]), flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump([asdict(row) for row in rows], file, indent=1)


def _options() -> Any:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="networks whose name contains this")
    parser.add_argument("--batch-size", type=int, default=2, help="of images; sequences take ten times as many")
    parser.add_argument("--turns", type=int, default=6, help="quadruples of blocks")
    parser.add_argument("--layout", choices=("nhwc", "nchw"), default="nhwc", help="of images")
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", help="write the rows to this file")
    return parser.parse_args()


def _case(name: str, options: Any) -> Case:
    images = name == "resnet50"
    return Case(
        workload=name,
        framework="jax",
        mode="compiled",
        device=options.device,
        layout=options.layout if images else "nchw",
        batch_size=options.batch_size if images else 10 * options.batch_size,
    )


def _measure(case: Case, turns: int, clock: Clock) -> Row:
    work = workloads.load(case.workload).build(case)
    program = framework.lower(work, case)
    steps = (program.step, hand_written(work, case))
    first, losses = zip(*(_first(step, clock) for step in steps), strict=True)
    counts = [_count(step, clock) for step in steps]
    blocks = [[_seconds(steps[side], counts[side], clock) for side in (0, 1, 1, 0)] for _ in range(turns)]
    ours, second, third, last = np.array(blocks).T
    ratios = np.log((ours + last) / (second + third))
    found = signed_rank(ratios, ALPHA)
    low, high = (found.low, found.high) if found else (float(ratios.min()), float(ratios.max()))
    return Row(
        label=f"{case.workload} training {case.precision} {case.layout} batch {case.batch_size}",
        ours_ms=1e3 * float(np.median([ours, last])),
        theirs_ms=1e3 * float(np.median([second, third])),
        ratio=math.exp(float(np.median(ratios))),
        low=math.exp(low),
        high=math.exp(high),
        quadruples=turns,
        difference=abs(losses[0] / losses[1] - 1),
        first_ours_seconds=first[0],
        first_theirs_seconds=first[1],
    )


def hand_written(work: Any, case: Case) -> Step:
    """What one writes without us: optax, one jitted step that takes its state's memory, a wait for the result."""
    device = jax.devices(case.device.split(":")[0])[0]
    network = NETWORKS[case.workload](case.layout)
    spec = work.optimizer
    rule = optax.sgd(spec.rate, momentum=spec.momentum if spec.kind == "momentum" else None)
    inputs = work.batch["input"]
    inputs = inputs.transpose(0, 2, 3, 1) if case.layout == "nhwc" else inputs
    trained, moving = jax.device_put(network.weights(iter(work.weights.values())), device, may_alias=False)
    values, target = jax.device_put((np.ascontiguousarray(inputs), work.batch["target"].astype(np.int32)), device)
    state = (trained, moving, rule.init(trained))

    def loss(trained: Any, moving: Any, values: Any, target: Any) -> Any:
        logits, moved = network(trained, moving, values)
        return optax.softmax_cross_entropy_with_integer_labels(logits, target).mean(), moved

    def train(state: Any, values: Any, target: Any) -> Any:
        trained, moving, memory = state
        (value, moving), slopes = jax.value_and_grad(loss, has_aux=True)(trained, moving, values, target)
        updates, memory = rule.update(slopes, memory, trained)
        return (optax.apply_updates(trained, updates), moving, memory), value

    jitted = jax.jit(train, donate_argnums=0)

    def step() -> Any:
        nonlocal state
        state, value = jax.block_until_ready(jitted(state, values, target))
        return value

    return step


def _first(step: Step, clock: Clock) -> tuple[float, float]:
    start = clock()
    loss = float(step())
    return clock() - start, loss


def _count(step: Step, clock: Clock) -> int:
    """Steps of a block."""
    step()
    return max(1, round(BLOCK_SECONDS / _seconds(step, 2, clock)))


def _seconds(step: Step, count: int, clock: Clock) -> float:
    """Of one step."""
    start = clock()
    for _ in range(count):
        step()
    return (clock() - start) / count


def _line(row: Row) -> str:
    return (
        f"{row.label:<44} ours {row.ours_ms:9.3f} ms  theirs {row.theirs_ms:9.3f} ms  "
        f"ratio {row.ratio:.4f} [{row.low:.4f}, {row.high:.4f}]  first {row.first_ours_seconds:.1f} s, "
        f"{row.first_theirs_seconds:.1f} s  results differ by {row.difference:.1e}"
    )


if __name__ == "__main__":
    main()
