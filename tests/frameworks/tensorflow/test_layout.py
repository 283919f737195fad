from __future__ import annotations

from typing import Any

import numpy as np
import pytest


@pytest.fixture
def layout() -> Any:
    from steptime.frameworks.tensorflow import layout

    return layout


def test_what_is_stored_comes_back_in_logical_order(layout: Any, tensorflow: Any) -> None:
    image = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    assert layout.stored(image).shape == (2, 4, 5, 3)
    np.testing.assert_array_equal(layout.logical(layout.stored(image)), image)
    np.testing.assert_array_equal(
        layout.put(layout.logical(layout.stored(image))), layout.stored(image)
    )


def test_only_images_have_another_order(layout: Any) -> None:
    table = np.zeros((4, 6))
    assert (
        layout.stored(table) is table
        and layout.logical(table) is table
        and layout.put(table) is table
    )


def test_an_axis_is_found_where_it_lies(layout: Any) -> None:
    image, sequence = np.zeros((2, 4, 5, 3)), np.zeros((2, 7, 6))
    assert [image.shape[layout.axis(image, place)] for place in (0, 1, 2, -1)] == [3, 4, 5, 5]
    assert [sequence.shape[layout.axis(sequence, place)] for place in (0, 1, -1)] == [7, 6, 6]


def test_weights_of_products_have_their_units_last(layout: Any, graph_of: Any) -> None:
    turns = layout.turns(graph_of("residual")) | layout.turns(graph_of("sequence"))
    assert turns["conv1.weight"] == (2, 3, 1, 0) and turns["dense1.weight"] == (1, 0)
    assert turns["lstm1.weight_hidden"] == (1, 0)
    assert not {"conv1.bias", "embedding1.weight", "batch_norm1.weight"} & turns.keys()
