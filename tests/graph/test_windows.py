from __future__ import annotations

from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from steptime.core.errors import WrongGraph
from steptime.graph import Layer, Net
from steptime.graph.ops import AveragePool
from steptime.graph.windows import cells, covering_pads, exact_pads

SMALL = st.integers(1, 4)
PADS = st.tuples(st.integers(0, 3), st.integers(0, 3))


def pool(size: Any, *settings: Any) -> Layer:
    net = Net("tiny")
    return net.graph(net.layer(AveragePool(*settings), net.input(1, *size))).layers[-1]


def test_exact_pads_replace_rounding_up() -> None:
    layer = pool((7, 6), (3, 3), (2, 2), ((1, 1), (1, 1)), True)
    assert exact_pads(layer) == covering_pads(layer) == ((1, 1), (1, 2))


def test_covering_pads_do_not_crop_cells_outside_all_windows() -> None:
    layer = pool((8, 7), (2, 2), (3, 3))
    assert exact_pads(layer) == ((0, 0), (0, -2))
    assert covering_pads(layer) == ((0, 0), (0, 0))


def test_cells_do_not_count_padding() -> None:
    assert cells(pool((3, 4), (2, 3), (2, 2), ((1, 0), (1, 1)))) == [[2, 3], [4, 6]]


@given(
    size=st.tuples(st.integers(3, 9), st.integers(3, 9)),
    kernel=st.tuples(SMALL, SMALL),
    stride=st.tuples(SMALL, SMALL),
    padding=st.tuples(PADS, PADS),
    ceil=st.booleans(),
)
def test_cells_equal_a_count_for_any_window(
    size: Any, kernel: Any, stride: Any, padding: Any, ceil: bool
) -> None:
    try:
        layer = pool(size, kernel, stride, padding, ceil)
    except WrongGraph:
        assume(False)
    for axis in (0, 1):
        before, behind = covering_pads(layer)[axis]
        assert (size[axis] + before + behind - kernel[axis]) // stride[axis] + 1 == layer.shape[
            1 + axis
        ]

    def seen(axis: int, place: int) -> int:
        start = place * stride[axis] - padding[axis][0]
        return len([at for at in range(start, start + kernel[axis]) if 0 <= at < size[axis]])

    rows, columns = layer.shape[1:]
    assert cells(layer) == [
        [seen(0, row) * seen(1, column) for column in range(columns)] for row in range(rows)
    ]
