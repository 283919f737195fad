from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from steptime.core.case import Case
from steptime.data.synthetic import synthetic_batch
from steptime.graph import Net, Work, momentum
from steptime.graph.weights import initial_weights
from steptime.ranks.launcher import find_free_port


@pytest.fixture
def rank(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes the program of one of two ranks. All run in this process."""
    from steptime.frameworks import tensorflow as folder

    monkeypatch.setenv("MASTER_PORT", str(find_free_port(8)))
    net = Net("small")
    graph = net.graph(net.dense(net.relu(net.dense(net.input(6), 8)), 3))
    weights = dict(initial_weights(graph, 0))

    def make(number: int, **settings: Any) -> Any:
        for name, value in (("RANK", number), ("WORLD_SIZE", 2), ("LOCAL_RANK", number)):
            monkeypatch.setenv(name, str(value))
        # The same number as in all tests of this process: TensorFlow keeps the first.
        threads = len(os.sched_getaffinity(0))
        defaults = {
            "workload": "small",
            "framework": "tensorflow",
            "mode": "session",
            "batch_size": 4,
            "threads": threads,
        }
        case = Case(**{**defaults, **settings})
        return folder.lower(
            Work(graph, weights, synthetic_batch(graph, 4, number), momentum(0.1, 0.9)), case
        )

    return make


@pytest.mark.live
def test_parameter_server_applies_the_steps_of_all_ranks(rank: Any) -> None:
    first, second = (rank(number, devices=2, exchange="parameter_server") for number in range(2))
    alone, batch = rank(0), rank(1).work.batch
    first.step(), second.step(), first.step()
    alone.step(), alone.feed(batch), alone.step(), alone.feed(alone.work.batch), alone.step()
    for name, values in alone.weights().items():
        assert np.array_equal(first.weights()[name], second.weights()[name])
        np.testing.assert_allclose(first.weights()[name], values, rtol=1e-5, atol=1e-7)


def test_unsupported_refuses_a_parameter_server_without_a_session() -> None:
    from steptime.frameworks import tensorflow as folder

    case = Case(
        workload="small",
        framework="tensorflow",
        mode="graph",
        devices=2,
        exchange="parameter_server",
    )
    assert "mode=session" in str(folder.unsupported(case))
