"""Times the same JAX step by the engine and by hand, alternately, on one CPU.

Prints the shortest time of both in nanoseconds. It is a process of its own because XLA gets its
threads when it starts; a step on one CPU needs only that CPU to be free."""

from __future__ import annotations

import sys
import time
from typing import Any

from steptime.core.case import Case
from steptime.core.protocol import Protocol
from steptime.data.synthetic import synthetic_batch
from steptime.engine.meter import Meter
from steptime.frameworks import jax as folder
from steptime.graph import Net, Work, sgd
from steptime.graph.weights import initial_weights

CASE = Case(workload="wide", framework="jax", mode="compiled", batch_size=64, threads=1)
SHORT = Protocol(
    warmup_steps=10, warmup_seconds=0.1, warmup_most_seconds=0.5, least_steps=1, least_seconds=0.0
)


def make_program() -> Any:
    """Long enough to run asynchronously: XLA runs very short programs at once."""
    net = Net("wide")
    x = net.input(200)
    for _ in range(3):
        x = net.relu(net.dense(x, 200))
    graph = net.graph(net.dense(x, 10))
    weights = dict(initial_weights(graph, 0))
    return folder.lower(Work(graph, weights, synthetic_batch(graph, 64, 0), sgd(1e-3)), CASE)


def time_by_hand_ns(program: Any) -> int:
    """As one would write it: launch, then wait for all outputs."""
    import jax

    start = time.perf_counter_ns()
    loss = program.launch()
    jax.block_until_ready((program.state, loss))
    return time.perf_counter_ns() - start


def main(low: float, high: float, turns: int) -> None:
    """Stops as soon as the ratio is within the bounds.

    Other work on the machine only adds time, and more turns leave less of it in the minimum. A step
    that does not wait stays below the bounds, whatever the number of turns."""
    measured = make_program()
    by_hand = make_program()
    if "launched" in sys.argv:
        measured.step = measured.launch
    meter = Meter(measured, CASE, SHORT)
    meter.prepare()
    time_by_hand_ns(by_hand)
    engine_ns = by_hand_ns = 1 << 62
    for turn in range(1, turns + 1):
        engine_ns = min(engine_ns, meter.block(0.0).dispatch_ns)
        by_hand_ns = min(by_hand_ns, time_by_hand_ns(by_hand))
        if turn % 100 == 0 and low <= engine_ns / by_hand_ns <= high:
            break
    print(engine_ns, by_hand_ns)


if __name__ == "__main__":
    main(float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
