"""What a wait costs the step behind it: caches grow cold and a core falls asleep while a rank waits for the network.

    python benchmarks/waiting.py          # cifar10-cnn, batch 16, one thread: under a minute

Blocks of steps take turns, each step behind a pause of that length; only the step is timed. A law of communication that
adds the time on the wire to computing without a pause does not know this."""

from __future__ import annotations

import time
from statistics import median, quantiles
from typing import Any

from steptime import shelf, workloads
from steptime.core.case import Case

PAUSES_SECONDS = (0.0, 0.004, 0.042)  # what 490,280 bytes take at 1 Gbit/s and at 100 Mbit/s
TURNS, STEPS, WARM_UP = 20, 30, 50


def main() -> None:
    case = Case(workload="cifar10-cnn", framework="pytorch", phase="training", batch_size=16, threads=1)
    program = shelf.load("frameworks", "pytorch").lower(workloads.load(case.workload).build(case), case)
    for _ in range(WARM_UP):
        program.step()
    turns = [[_block(program, pause) for pause in PAUSES_SECONDS] for _ in range(TURNS)]
    print(f"without a pause: {1e3 * median(turn[0] for turn in turns):.2f} ms a step")
    for place, pause in enumerate(PAUSES_SECONDS[1:], 1):
        longer = [1e3 * (turn[place] - turn[0]) for turn in turns]
        first, middle, third = quantiles(longer, n=4)
        print(
            f"behind {1e3 * pause:.0f} ms: {middle:+.2f} ms (middle half of {TURNS} turns {first:+.2f} … {third:+.2f})"
        )


def _block(program: Any, pause: float) -> float:
    """Seconds of the typical step."""
    seconds = []
    for _ in range(STEPS):
        time.sleep(pause)
        began = time.perf_counter()
        program.step()
        seconds.append(time.perf_counter() - began)
    return median(seconds)


if __name__ == "__main__":
    main()
