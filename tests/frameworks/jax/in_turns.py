"""Times the same JAX step by the engine and by hand, in turns, on one CPU; prints both least times in nanoseconds.

A process of its own, because XLA gets its threads when it starts: a step on one CPU needs only that one to be free."""

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


def program() -> Any:
    """Long enough to be computed behind the host's back: XLA runs what is very short at once."""
    net = Net("wide")
    x = net.input(200)
    for _ in range(3):
        x = net.relu(net.dense(x, 200))
    graph = net.graph(net.dense(x, 10))
    return folder.lower(
        Work(graph, dict(initial_weights(graph, 0)), synthetic_batch(graph, 64, 0), sgd(1e-3)), CASE
    )


def by_hand_ns(program: Any) -> int:
    """As one would write it: launch, then wait for all that came out."""
    import jax

    start = time.perf_counter_ns()
    loss = program.launch()
    jax.block_until_ready((program.state, loss))
    return time.perf_counter_ns() - start


def main(low: float, high: float, turns: int) -> None:
    """Until the ratio is within the bounds: other work on the machine only ever adds time, and the more turns, the less
    of it is left in the least. A step that is not waited for stays below the bounds however many there are."""
    own, other = program(), program()
    if "launched" in sys.argv:
        own.step = own.launch
    meter = Meter(own, CASE, SHORT)
    meter.prepare()
    by_hand_ns(other)
    engine = by_hand = 1 << 62
    for turn in range(1, turns + 1):
        engine, by_hand = min(engine, meter.block(0.0).dispatch_ns), min(by_hand, by_hand_ns(other))
        if turn % 100 == 0 and low <= engine / by_hand <= high:
            break
    print(engine, by_hand)


if __name__ == "__main__":
    main(float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
