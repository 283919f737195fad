"""Convolutions and pools against the reference, in every way in which they are lowered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from steptime.core.case import Case
from steptime.frameworks import numpy as reference
from steptime.frameworks import tensorflow as folder
from steptime.graph import Graph, Net, Work, sgd
from steptime.graph.op import Op
from steptime.graph.ops import AveragePool, Conv, MaxPool
from steptime.graph.weights import initial_weights


def both(graph: Graph, batch: dict[str, Any], **settings: Any) -> tuple[Any, Any]:
    """TensorFlow's program and the reference's."""
    work = Work(graph, dict(initial_weights(graph, 0)), batch, sgd(0.1))
    case = Case(
        workload="one", framework="tensorflow", **{"precision": "fp64", "mode": "eager", **settings}
    )
    return folder.lower(work, case), reference.lower(
        work, Case(workload="one", framework="numpy", precision="fp64")
    )


def one_layer(op: Op, *dims: int) -> Graph:
    net = Net("one")
    return net.graph(net.layer(op, net.input(*dims), name="here"))


def assert_equal_gradients(
    graph: Graph, batch: dict[str, Any], tolerance: float = 1e-9, **settings: Any
) -> None:
    program, right = both(graph, batch, **settings)
    _, gradients = program.gradients(batch)
    for name, array in right.gradients(batch)[1].items():
        np.testing.assert_allclose(
            gradients[name], array, rtol=tolerance, atol=tolerance, err_msg=name
        )


@pytest.mark.parametrize("mode", ["eager", "xla"])
@pytest.mark.parametrize("padding", [((0, 1), (2, 0)), ((2, 2), (2, 2)), ((0, 0), (1, 1))])
@pytest.mark.parametrize("op", [AveragePool, MaxPool])
def test_pools_round_and_pad_like_the_reference(op: Any, padding: Any, mode: str) -> None:
    # All values are negative: a padding of 0 would be the largest.
    image = np.random.default_rng(0).standard_normal((2, 3, 6, 7)) - 5
    for ceil in (False, True):
        batch = {"input": image, "target": np.zeros((2, 3, 4), np.int64)}
        program, right = both(
            one_layer(op((3, 3), (2, 2), padding, ceil), 3, 6, 7), batch, mode=mode
        )
        np.testing.assert_allclose(program.predict(batch), right.predict(batch), rtol=1e-12)


@pytest.mark.parametrize(
    ("mode", "precision"), [("eager", "fp64"), ("graph", "fp32"), ("xla", "fp64")]
)
def test_max_pool_sends_the_gradient_to_the_first_of_equal_cells(mode: str, precision: str) -> None:
    net = Net("ties")
    x = net.max_pool(net.relu(net.conv(net.input(1, 6, 6), 2, 1)), 3, stride=2, padding=1)
    graph = net.graph(net.dense(net.flatten(x), 3))
    # Only three values, so that ties are everywhere.
    image = np.random.default_rng(0).integers(-1, 2, (4, 1, 6, 6)).astype(np.float64)
    batch = {"input": image, "target": np.array([0, 1, 2, 0])}
    assert_equal_gradients(
        graph, batch, {"fp64": 1e-9, "fp32": 1e-5}[precision], mode=mode, precision=precision
    )


CONVOLUTIONS = {
    "grouped": Conv(6, (3, 2), (2, 1), ((1, 0), (0, 1)), groups=2),
    "by channel": Conv(8, (3, 3), (2, 2), ((1, 1), (0, 2)), groups=4),
    "by channel, uneven": Conv(4, (3, 3), (2, 1), groups=4),
    "dilated": Conv(3, (3, 2), padding=((2, 3), (1, 0)), dilation=(2, 3)),
    "dilated, grouped": Conv(4, (2, 3), (2, 3), ((1, 0), (2, 2)), (3, 2), groups=2),
}


@pytest.mark.parametrize(
    ("name", "mode"), [*((name, "eager") for name in CONVOLUTIONS), ("dilated, grouped", "xla")]
)
def test_conv_outputs_and_gradients_equal_the_reference(name: str, mode: str) -> None:
    net = Net("two")
    x = net.layer(CONVOLUTIONS[name], net.conv(net.input(2, 9, 8), 4, 1))
    graph = net.graph(net.dense(net.global_average_pool(x), 3))
    batch = {
        "input": np.random.default_rng(0).standard_normal((2, 2, 9, 8)),
        "target": np.array([0, 2]),
    }
    program, right = both(graph, batch, mode=mode)
    np.testing.assert_allclose(program.predict(batch), right.predict(batch), rtol=1e-9)
    assert_equal_gradients(graph, batch, mode=mode)


@pytest.mark.parametrize(
    ("pads", "size", "name"),
    [
        (((0, 0), (0, 0)), 8, "VALID"),
        (((0, 1), (0, 1)), 8, "SAME"),
        (((1, 1), (1, 1)), 7, "SAME"),
        # PyTorch's usual padding: the windows lie elsewhere.
        (((1, 1), (1, 1)), 8, [(0, 0), (1, 1), (1, 1), (0, 0)]),
    ],
)
def test_padding_is_named_only_if_tensorflow_pads_the_same(pads: Any, size: int, name: Any) -> None:
    from steptime.frameworks.tensorflow.ops.images import _padding

    assert _padding(pads, np.zeros((1, size, size, 3)), (3, 3), (2, 2)) == name


def test_pools_with_a_named_padding_equal_the_reference() -> None:
    batch = {
        "input": np.random.default_rng(0).standard_normal((2, 3, 7, 7)) - 5,
        "target": np.zeros((2, 3, 4), int),
    }
    for op in (AveragePool, MaxPool):
        program, right = both(one_layer(op((3, 3), (2, 2), ((1, 1), (1, 1))), 3, 7, 7), batch)
        np.testing.assert_allclose(program.predict(batch), right.predict(batch), rtol=1e-12)
