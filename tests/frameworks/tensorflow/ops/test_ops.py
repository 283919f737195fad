from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from steptime.core.case import Case
from steptime.frameworks import numpy as reference
from steptime.frameworks import tensorflow as folder
from steptime.graph import Graph, Net, Tensor, Work, sgd
from steptime.graph.weights import initial_weights


def both(graph: Graph, batch: dict[str, Any], **settings: Any) -> tuple[Any, Any]:
    """TensorFlow's program and the reference's."""
    work = Work(graph, dict(initial_weights(graph, 0)), batch, sgd(0.1))
    case = Case(
        workload="one", framework="tensorflow", **{"mode": "eager", "precision": "fp64", **settings}
    )
    exact = replace(case, framework="numpy", mode="eager", precision="fp64")
    return folder.lower(work, case), reference.lower(work, exact)


def pictures(*shape: int) -> dict[str, Any]:
    return {
        "input": np.random.default_rng(0).standard_normal(shape),
        "target": np.zeros(shape[0], np.int64),
    }


def tilted(net: Net) -> Tensor:
    """Layers over an image's last axis and parts along each axis, whatever the order in memory."""
    x = net.layer_norm(net.conv(net.input(2, 6, 5), 3, 1))
    x = net.concat(net.slice(x, 1, 4), net.dense(x, 4), axis=2)
    x = net.concat(x, net.scale(x, 0.5), axis=1)
    return net.dense(net.flatten(net.concat(x, x)), 3)


def test_ops_on_axes_of_images_equal_the_reference() -> None:
    net = Net("tilted")
    graph, batch = net.graph(tilted(net)), pictures(4, 2, 6, 5)
    program, right = both(graph, batch)
    np.testing.assert_allclose(program.predict(batch), right.predict(batch), rtol=1e-9)
    for name, array in right.gradients(batch)[1].items():
        np.testing.assert_allclose(
            program.gradients(batch)[1][name], array, rtol=1e-8, atol=1e-12, err_msg=name
        )


@pytest.mark.parametrize("epsilon", [1e-3, 1e-7])
def test_batch_norm_uses_the_epsilon_of_the_network(epsilon: float) -> None:
    """TensorFlow's wrapper would raise the small one to 1.001e-5."""
    net = Net("normal")
    x = net.batch_norm(net.input(2, 4, 4), epsilon=epsilon)
    graph, batch = net.graph(net.dense(net.flatten(x), 3)), pictures(4, 2, 4, 4)
    batch["input"] = (batch["input"] * 1e-3).astype(np.float32)  # so that epsilon decides
    program, right = both(graph, batch, precision="fp32")
    assert program.gradients(batch)[0] == pytest.approx(right.gradients(batch)[0], rel=1e-5)


@pytest.mark.parametrize("shape", [(3,), (3, 5), (3, 5, 4)])
@pytest.mark.parametrize("precision", ["fp32", "fp64"])
def test_batch_norm_normalises_the_first_axis_of_every_shape(
    shape: tuple[int, ...], precision: str
) -> None:
    net = Net("normal")
    x = net.batch_norm(net.input(*shape), momentum=0.3)
    graph, batch = net.graph(net.dense(net.flatten(x), 2)), pictures(6, *shape)
    program, right = both(graph, batch, precision=precision, phase="forward")
    assert float(program.step()) == pytest.approx(right.step(), rel=1e-5)
    for name in ("batch_norm1.running_mean", "batch_norm1.running_variance"):
        np.testing.assert_allclose(
            program.weights()[name], right.weights()[name], rtol=1e-5, atol=1e-7
        )


def test_dropout_keeps_the_mean(tensorflow: Any) -> None:
    from steptime.frameworks.tensorflow.context import LoweringContext
    from steptime.frameworks.tensorflow.ops.simple import dropout

    net = Net("drop")
    layer = net.graph(net.dropout(net.input(50), 0.2)).layers[-1]
    context = LoweringContext(
        tensorflow.float32,
        training=True,
        xla=False,
        step_count=tensorflow.constant(3, tensorflow.int64),
    )
    output = dropout(layer, {}, context, tensorflow.ones((200, 50))).numpy()
    assert set(np.unique(output)) == {0.0, np.float32(1.25)}
    assert np.mean(output == 0) == pytest.approx(0.2, abs=0.02)


@pytest.mark.parametrize("mode", ["eager", "graph", "session"])
def test_lrn_in_bf16_is_near_the_reference(mode: str) -> None:
    net = Net("neighbours")
    graph, batch = (
        net.graph(net.dense(net.flatten(net.lrn(net.conv(net.input(2, 7, 6), 6, 3), 5)), 3)),
        pictures(4, 2, 7, 6),
    )
    program, right = both(graph, batch, precision="bf16", mode=mode)
    for name, array in right.gradients(batch)[1].items():
        assert np.linalg.norm(program.gradients(batch)[1][name] - array) < 0.05 * np.linalg.norm(
            array
        ), name
