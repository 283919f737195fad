from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from steptime.core.case import Case
from steptime.core.errors import Unsupported
from steptime.frameworks import numpy as reference
from steptime.graph import Graph, Net, Work, ops, sgd
from steptime.graph.op import Op
from steptime.graph.ops import AveragePool, MaxPool
from steptime.graph.weights import initial_weights

LAYOUTS = ["nchw", "nhwc"]


def one_layer(op: Op, *dims: int) -> Graph:
    net = Net("one")
    return net.graph(net.layer(op, net.input(*dims), name="here"))


def both(graph: Graph, batch: dict[str, Any], **settings: Any) -> tuple[Any, Any]:
    """JAX's program and the reference's."""
    from steptime.frameworks import jax

    work = Work(graph, dict(initial_weights(graph, 0)), batch, sgd(0.1))
    case = Case(workload="one", framework="jax", mode="compiled", precision="fp64", **settings)
    return jax.lower(work, case), reference.lower(
        work, Case(workload="one", framework="numpy", precision="fp64")
    )


def test_ops_cover_every_op_of_the_graph() -> None:
    from steptime.frameworks.jax.ops import OPS

    assert set(OPS) == set(ops.OPS) - {"input"}


def test_lower_graph_names_an_op_without_lowering() -> None:
    from steptime.frameworks.jax.lowering import lower_graph

    class Strange(Op):
        pass

    with pytest.raises(Unsupported, match=r"one.*'strange'.*'here'"):
        lower_graph(one_layer(Strange(), 3))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("padding", [((0, 1), (2, 0)), ((2, 2), (2, 2)), ((0, 0), (1, 1))])
@pytest.mark.parametrize("op", [AveragePool, MaxPool])
def test_pools_round_and_pad_like_the_reference(op: Any, padding: Any, layout: str) -> None:
    # All values are negative: a padding of 0 would be the largest.
    image = np.random.default_rng(0).standard_normal((2, 3, 6, 7)) - 5
    for ceil in (False, True):
        batch = {"input": image, "target": np.zeros((2, 3, 4), np.int64)}
        program, right = both(
            one_layer(op((3, 3), (2, 2), padding, ceil), 3, 6, 7), batch, layout=layout
        )
        np.testing.assert_allclose(program.predict(batch), right.predict(batch), rtol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_max_pool_sends_the_gradient_to_the_first_of_equal_cells(layout: str) -> None:
    net = Net("ties")
    x = net.max_pool(net.relu(net.conv(net.input(1, 6, 6), 2, 1)), 3, stride=2, padding=1)
    graph = net.graph(net.dense(net.flatten(x), 3))
    # Only three values, so that ties are everywhere.
    image = np.random.default_rng(0).integers(-1, 2, (4, 1, 6, 6)).astype(np.float64)
    batch = {"input": image, "target": np.array([0, 1, 2, 0])}
    program, right = both(graph, batch, layout=layout)
    _, gradients = program.gradients(batch)
    for name, array in right.gradients(batch)[1].items():
        np.testing.assert_allclose(gradients[name], array, rtol=1e-9, atol=1e-12, err_msg=name)


def test_batch_norm_is_exact_far_from_zero() -> None:
    net = Net("far")
    graph = net.graph(net.dense(net.batch_norm(net.input(3)), 4))
    values = 1e4 + np.random.default_rng(0).standard_normal((8, 3))
    batch = {"input": values, "target": np.zeros(8, np.int64)}
    program, right = both(graph, batch)
    np.testing.assert_allclose(program.gradients(batch)[0], right.gradients(batch)[0], rtol=1e-6)


def test_batch_norm_moments_agree_in_one_and_two_passes(
    jax: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GPU uses one pass, the CPU two; the test computes both on the CPU."""
    net = Net("far")
    graph = net.graph(net.dense(net.flatten(net.batch_norm(net.conv(net.input(1, 4, 4), 2, 1))), 3))
    image = 100 + np.random.default_rng(0).standard_normal((4, 1, 4, 4))
    batch = {"input": image, "target": np.array([0, 1, 2, 0])}
    gradients = []
    for backend in ("cpu", "gpu"):
        monkeypatch.setattr(jax, "default_backend", lambda backend=backend: backend)
        gradients.append(both(graph, batch)[0].gradients(batch)[1])
    for name, array in gradients[0].items():
        np.testing.assert_allclose(gradients[1][name], array, rtol=1e-8, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["residual", "pooled", "joined"])
def test_gradients_equal_the_reference_in_every_layout(
    work_of: Any, name: str, layout: str
) -> None:
    work = work_of(name)
    program, right = both(work.graph, work.batch, layout=layout)
    loss, gradients = program.gradients(work.batch)
    right_loss, expected = right.gradients(work.batch)
    assert loss == pytest.approx(right_loss, rel=1e-12)
    for weight, array in expected.items():
        np.testing.assert_allclose(gradients[weight], array, rtol=1e-7, atol=1e-10, err_msg=weight)
