from __future__ import annotations

import numpy as np
import pytest

from steptime.frameworks.jax.layout import Layout
from steptime.graph.net import Net


@pytest.mark.parametrize("last", [False, True])
def test_what_is_stored_comes_back_in_logical_order(last: bool) -> None:
    layout, image = Layout(last), np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    assert layout.stored(image).shape[layout.channel_axis(image)] == 3
    np.testing.assert_array_equal(layout.logical(layout.stored(image)), image)
    np.testing.assert_array_equal(
        layout.logical_weight("k", layout.stored_weight("k", image)), image
    )


def test_a_kernel_with_channels_last_is_height_width_channels_filters() -> None:
    assert Layout(last=True).stored_weight("k", np.zeros((8, 3, 5, 7))).shape == (5, 7, 3, 8)


def test_matrices_of_products_are_kept_as_inputs_by_outputs_and_embeddings_as_they_are() -> None:
    net = Net("cell")
    layout = Layout.of(
        net.graph(net.dense(net.lstm(net.embedding(net.tokens(4, 9), 9, 3), 5), 7)), last=False
    )
    assert layout.turned == {"lstm1.weight_input", "lstm1.weight_hidden", "dense1.weight"}
    assert layout.stored_weight("dense1.weight", np.zeros((7, 5))).shape == (5, 7)
    assert layout.logical_weight("dense1.weight", np.zeros((5, 7))).shape == (7, 5)


def test_only_images_have_a_layout() -> None:
    table = np.zeros((4, 6))
    assert Layout(last=True).stored(table) is table
    assert Layout(last=True).channel_axis(table) == 1


def test_axes_are_counted_on_the_logical_shape() -> None:
    image, sequence = (3, 4, 5), (7, 6)
    for axis, size in enumerate(image):
        assert (
            Layout(last=True)
            .stored(np.zeros((2, *image)))
            .shape[Layout(last=True).axis(axis, image)]
            == size
        )
    assert [Layout(last=last).axis(-1, sequence) for last in (False, True)] == [2, 2]
    assert Layout(last=True).axis(-1, image) == 2  # width
