from __future__ import annotations

from typing import Any

import numpy as np
import pytest


@pytest.fixture
def layout() -> Any:
    from steptime.frameworks.tensorflow import layout

    return layout


def test_layout_restores_the_logical_order(layout: Any, tensorflow: Any) -> None:
    image = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    assert layout.batch_to_stored(image).shape == (2, 4, 5, 3)
    np.testing.assert_array_equal(layout.to_logical(layout.batch_to_stored(image)), image)
    np.testing.assert_array_equal(
        layout.to_stored(layout.to_logical(layout.batch_to_stored(image))),
        layout.batch_to_stored(image),
    )


def test_layout_leaves_tables_unchanged(layout: Any) -> None:
    table = np.zeros((4, 6))
    assert (
        layout.batch_to_stored(table) is table
        and layout.to_logical(table) is table
        and layout.to_stored(table) is table
    )


def test_axis_counts_on_the_logical_shape(layout: Any) -> None:
    image, sequence = np.zeros((2, 4, 5, 3)), np.zeros((2, 7, 6))
    assert [image.shape[layout.axis(image, place)] for place in (0, 1, 2, -1)] == [3, 4, 5, 5]
    assert [sequence.shape[layout.axis(sequence, place)] for place in (0, 1, -1)] == [7, 6, 6]


def test_transpositions_put_units_last(layout: Any, graph_of: Any) -> None:
    orders = layout.transpositions(graph_of("residual")) | layout.transpositions(
        graph_of("sequence")
    )
    assert orders["conv1.weight"] == (2, 3, 1, 0) and orders["dense1.weight"] == (1, 0)
    assert orders["lstm1.weight_hidden"] == (1, 0)
    assert not {"conv1.bias", "embedding1.weight", "batch_norm1.weight"} & orders.keys()
