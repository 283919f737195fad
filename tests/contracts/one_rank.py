"""One rank of a shared step: `one_rank.py FRAMEWORK MODE EXCHANGE RANKS OUT`.

Environment variables give its number. Every rank takes its share of one batch, so the weights
afterwards must equal those of a single process with the complete batch."""

from __future__ import annotations

import os
import sys

import numpy as np

from steptime import plugins
from steptime.core.case import Case
from steptime.core.ranks import read_ranks
from steptime.data.synthetic import synthetic_batch
from steptime.graph import Net, Work, momentum
from steptime.graph.weights import initial_weights

BATCH, STEPS = 8, 3


def graph():
    net = Net("small")
    x = net.max_pool(net.relu(net.conv(net.input(2, 8, 8), 4, 3, padding="same")), 2)
    return net.graph(net.dense(net.relu(net.dense(net.flatten(x), 16)), 3))


def main(framework: str, mode: str, exchange: str, ranks: int, out: str) -> None:
    ranks_here, network = read_ranks(os.environ), graph()
    case = Case(
        workload="small", framework=framework, mode=mode, batch_size=BATCH // ranks, threads=1,
        devices=ranks, exchange=exchange,
    )  # fmt: skip
    rows = slice(ranks_here.rank * case.batch_size, (ranks_here.rank + 1) * case.batch_size)
    batch = {name: values[rows] for name, values in synthetic_batch(network, BATCH, 0).items()}
    weights = dict(initial_weights(network, 0))
    program = plugins.load("frameworks", framework).lower(
        Work(network, weights, batch, momentum(0.1, 0.9)), case
    )
    for _ in range(STEPS):
        program.step()
    program.wait()
    moved, tiny = (program.exchange(), program.exchange(tiny=True)) if ranks > 1 else (0, 0)
    np.savez(
        f"{out}.{ranks_here.rank}.npz", **program.weights(), moved_bytes=moved, tiny_bytes=tiny
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
