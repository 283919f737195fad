from __future__ import annotations

import numpy as np

from steptime.graph.batches import in_own_size, of_size


def test_batches_keep_one_size_and_tell_how_many_count() -> None:
    source = [{"input": np.arange(5), "target": np.arange(5) * 10}]
    found = list(of_size(source, 2, 100))
    assert [own for _, own in found] == [2, 2, 1]
    assert found[-1][0]["input"].tolist() == [4, 4] and found[-1][0]["target"].tolist() == [40, 40]


def test_no_more_samples_than_asked_for() -> None:
    endless = ({"input": np.zeros(4)} for _ in iter(int, 1))
    assert [own for _, own in of_size(endless, 4, 10)] == [4, 4, 2]


def test_any_number_of_inputs_goes_through_a_fixed_size() -> None:
    sizes = []

    def compute(values: np.ndarray) -> np.ndarray:
        sizes.append(len(values))
        return values * 2

    assert in_own_size(compute, np.arange(7), 3).tolist() == [0, 2, 4, 6, 8, 10, 12]
    assert sizes == [3, 3, 3]
