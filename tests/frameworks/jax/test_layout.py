from __future__ import annotations

import numpy as np
import pytest

from steptime.frameworks.jax.layout import Layout
from steptime.graph.net import Net


@pytest.mark.parametrize("last", [False, True])
def test_layout_restores_the_logical_order(last: bool) -> None:
    layout, image = Layout(last), np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    assert layout.to_stored(image).shape[layout.channel_axis(image)] == 3
    np.testing.assert_array_equal(layout.to_logical(layout.to_stored(image)), image)
    np.testing.assert_array_equal(
        layout.weight_to_logical("k", layout.weight_to_stored("k", image)), image
    )


def test_layout_stores_kernels_channels_last() -> None:
    assert Layout(last=True).weight_to_stored("k", np.zeros((8, 3, 5, 7))).shape == (5, 7, 3, 8)


def test_layout_transposes_matrices_of_products_only() -> None:
    net = Net("cell")
    layout = Layout.for_graph(
        net.graph(net.dense(net.lstm(net.embedding(net.tokens(4, 9), 9, 3), 5), 7)), last=False
    )
    assert layout.transposed == {"lstm1.weight_input", "lstm1.weight_hidden", "dense1.weight"}
    assert layout.weight_to_stored("dense1.weight", np.zeros((7, 5))).shape == (5, 7)
    assert layout.weight_to_logical("dense1.weight", np.zeros((5, 7))).shape == (7, 5)


def test_layout_leaves_tables_unchanged() -> None:
    table = np.zeros((4, 6))
    assert Layout(last=True).to_stored(table) is table
    assert Layout(last=True).channel_axis(table) == 1


def test_layout_axis_counts_on_the_logical_shape() -> None:
    image, sequence = (3, 4, 5), (7, 6)
    stored = Layout(last=True).to_stored(np.zeros((2, *image)))
    for axis, size in enumerate(image):
        assert stored.shape[Layout(last=True).axis(axis, image)] == size
    assert [Layout(last=last).axis(-1, sequence) for last in (False, True)] == [2, 2]
    assert Layout(last=True).axis(-1, image) == 2  # width
