from __future__ import annotations

import numpy as np

from steptime.graph.batches import batches_of_size, compute_in_batches


def test_batches_of_size_fill_up_the_last_batch_and_count_its_samples() -> None:
    source = [{"input": np.arange(5), "target": np.arange(5) * 10}]
    batches = list(batches_of_size(source, 2, 100))
    assert [count for _, count in batches] == [2, 2, 1]
    last, _ = batches[-1]
    assert last["input"].tolist() == [4, 4] and last["target"].tolist() == [40, 40]


def test_batches_of_size_stop_at_the_limit() -> None:
    endless = ({"input": np.zeros(4)} for _ in iter(int, 1))
    assert [own for _, own in batches_of_size(endless, 4, 10)] == [4, 4, 2]


def test_compute_in_batches_takes_any_number_of_inputs() -> None:
    sizes = []

    def compute(values: np.ndarray) -> np.ndarray:
        sizes.append(len(values))
        return values * 2

    assert compute_in_batches(compute, np.arange(7), 3).tolist() == [0, 2, 4, 6, 8, 10, 12]
    assert sizes == [3, 3, 3]
