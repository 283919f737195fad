"""What the ONNX model computes, by its runtimes, is what the reference computes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from steptime import networks
from steptime.core.case import Case
from steptime.core.errors import NotInstalled, SteptimeError, Unsupported, WrongGraph
from steptime.data.synthetic import synthetic_batch
from steptime.frameworks import numpy as reference
from steptime.frameworks import onnxruntime, openvino
from steptime.graph import Graph, Net, Tensor, Work, ops, sgd
from steptime.graph.onnx import DTYPES, OPS, onnx_model
from steptime.graph.weights import initial_weights

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
RUNTIMES = {"onnxruntime": onnxruntime, "openvino": openvino}
MOST_FLOPS = 1e9  # of one sample: the reference is slow

SINGLE_OPS: dict[str, Callable[[Net], Tensor]] = {
    "add": lambda net: net.add(x := net.dense(net.input(4), 5), net.tanh(x)),
    "attention": lambda net: net.attention(
        x := net.input(4, 6), net.tanh(x), x, heads=2, causal=True
    ),
    "attention_of_more_keys": lambda net: net.attention(
        x := net.input(4, 6), keys := net.concat(x, net.tanh(x)), keys, heads=3, scale=0.3
    ),
    "average_pool": lambda net: net.average_pool(
        net.input(2, 7, 6), 3, stride=2, padding=1, ceil=True
    ),
    "batch_norm": lambda net: net.batch_norm(net.input(3, 4, 4)),
    "batch_norm_of_features": lambda net: net.batch_norm(net.input(6)),
    "batch_norm_of_a_sequence": lambda net: net.batch_norm(net.input(6, 3)),
    "concat": lambda net: net.concat(x := net.input(2, 3, 4), net.conv(x, 3, 1), x),
    "concat_of_features": lambda net: net.concat(x := net.input(3, 4), net.dense(x, 2), axis=-1),
    "conv": lambda net: net.conv(net.input(4, 9, 8), 6, 3, stride=2, padding="same", groups=2),
    "dense": lambda net: net.dense(net.input(5), 4),
    "dense_over_time": lambda net: net.dense(net.input(3, 5), 4),
    "dense_over_time_without_bias": lambda net: net.dense(net.input(3, 5), 4, bias=False),
    "dropout": lambda net: net.dropout(net.input(5), 0.5),
    "embedding": lambda net: net.embedding(net.tokens(5, 11), 11, 4),
    "flatten": lambda net: net.flatten(net.input(3, 4, 5)),
    "gelu": lambda net: net.gelu(net.input(5)),
    "gelu_by_tanh": lambda net: net.gelu(net.input(5), tanh=True),
    "global_average_pool": lambda net: net.global_average_pool(net.input(3, 4, 5)),
    "gru": lambda net: net.gru(net.input(5, 4), 3),
    "layer_norm": lambda net: net.layer_norm(net.input(3, 6), epsilon=0.1),
    "lrn": lambda net: net.lrn(net.input(7, 3, 4), 5, alpha=2.0, beta=0.6, k=2.0),
    "lrn_of_a_broken_k": lambda net: net.lrn(net.input(7, 3, 4), 3, alpha=2.0, beta=0.6, k=1.5),
    "lstm": lambda net: net.lstm(net.input(5, 4), 3),
    "max_pool": lambda net: net.max_pool(net.input(2, 7, 6), 3, stride=2, padding=1, ceil=True),
    "pad_channels": lambda net: net.pad_channels(net.input(2, 3, 4), 1, 2),
    "positions": lambda net: net.positions(net.input(3, 4)),
    "relu": lambda net: net.relu(net.input(2, 3, 3)),
    "rnn": lambda net: net.rnn(net.input(5, 4), 3),
    "rnn_by_relu": lambda net: net.rnn(net.input(5, 4), 3, relu=True),
    "scale": lambda net: net.scale(net.input(5), 0.3),
    "sigmoid": lambda net: net.sigmoid(net.input(5)),
    "slice": lambda net: net.slice(net.input(3, 6), 1, 4),
    "slice_of_tokens": lambda net: net.embedding(net.slice(net.tokens(6, 11), 2, 5), 11, 4),
    "tanh": lambda net: net.tanh(net.input(5)),
    "tied_dense": lambda net: net.tied_dense(
        table := net.embedding(net.tokens(5, 11), 11, 4), table
    ),
    "tied_embedding": lambda net: net.tied_embedding(
        x := net.tokens(5, 11), net.embedding(x, 11, 4)
    ),
}


@pytest.fixture(params=RUNTIMES)
def runtime(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    skip_where_absent(name)
    return name


def skip_where_absent(name: str) -> None:
    """Asks our own folder: a plain import of OpenVINO would start its telemetry."""
    try:
        RUNTIMES[name].versions()
    except NotInstalled as problem:
        pytest.skip(str(problem))


def graph_of(write: Callable[[Net], Tensor]) -> Graph:
    net = Net("tiny")
    return net.graph(write(net))


def random_weights(graph: Graph) -> dict[str, Any]:
    """Not the initial ones, among which a lost bias of 0 or variance of 1 would not show.

    None is negative, because variances are among them."""
    rng = np.random.default_rng(3)
    return {
        name: rng.uniform(0.1, 0.6, weight.shape).astype(np.float32)
        for name, weight in graph.weights.items()
    }


def assert_equals_the_reference(runtime: str, graph: Graph, weights: dict[str, Any]) -> None:
    work = Work(graph, weights, synthetic_batch(graph, 2, 0), sgd())
    case = Case(
        workload="tiny", framework="numpy", precision="fp64", phase="inference", batch_size=2
    )
    expected = reference.lower(work, case).predict(work.batch)
    runtime_case = replace(case, framework=runtime, precision="fp32", mode="graph")
    output = RUNTIMES[runtime].lower(work, runtime_case).predict(work.batch)
    tolerance = 1e-4 * max(np.abs(expected).max(), 1e-3)
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=tolerance)


def test_onnx_ops_are_complete_and_tested() -> None:
    assert set(OPS) == set(ops.OPS) - {"input"}
    assert set(OPS) <= set(SINGLE_OPS)


@pytest.mark.parametrize("name", SINGLE_OPS)
def test_onnx_op_equals_the_reference(runtime: str, name: str) -> None:
    graph = graph_of(SINGLE_OPS[name])
    assert_equals_the_reference(runtime, graph, random_weights(graph))


@pytest.mark.parametrize("name", networks.catalogue())
def test_onnx_network_equals_the_reference(runtime: str, name: str) -> None:
    graph = networks.load(name).graph
    if graph.forward_flops > MOST_FLOPS:
        pytest.skip(f"{name} takes the reference too long")
    assert_equals_the_reference(runtime, graph, dict(initial_weights(graph, 0)))


SMALL = st.integers(1, 3)
PAIR = st.tuples(SMALL, SMALL)
PADS = st.tuples(*[st.tuples(st.integers(0, 2), st.integers(0, 2))] * 2)
POOLS = st.builds(
    lambda pool, *values: pool(*values),
    st.sampled_from([ops.MaxPool, ops.AveragePool]),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    PAIR,
    PADS,
    st.booleans(),
)
CONVOLUTIONS = st.builds(
    ops.Conv,
    st.sampled_from([2, 4]),
    PAIR,
    PAIR,
    PADS,
    PAIR,
    st.sampled_from([1, 2]),
    st.booleans(),
)


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(
    size=st.tuples(st.integers(3, 10), st.integers(3, 10)),
    layers=st.lists(st.one_of(POOLS, CONVOLUTIONS), min_size=1, max_size=3),
)
@pytest.mark.parametrize("name", RUNTIMES)
def test_onnx_windows_equal_the_reference(name: str, size: Any, layers: Any) -> None:
    skip_where_absent(name)
    net = Net("tiny")
    x = net.input(2, *size)
    try:
        for op in layers:
            x = net.layer(op, x)
        graph = net.graph(x)
        assert_equals_the_reference(name, graph, random_weights(graph))
    except (WrongGraph, Unsupported):
        assume(False)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SINGLE_OPS)
def test_onnx_model_is_valid_in_every_dtype(name: str, dtype: str) -> None:
    graph = graph_of(SINGLE_OPS[name])
    model = onnx_model(graph, random_weights(graph), batch_size=3, dtype=dtype)
    onnx.checker.check_model(model, full_check=True)
    output = model.graph.output[0].type.tensor_type
    assert output.elem_type == getattr(onnx.TensorProto, DTYPES[dtype])
    assert [axis.dim_value for axis in output.shape.dim] == [3, *graph[graph.output].shape]


def test_onnx_initializers_are_the_weights_by_canonical_name() -> None:
    graph = graph_of(lambda net: net.dense(net.lstm(net.input(5, 4), 3), 2))
    weights = random_weights(graph)
    initializers = {
        i.name: onnx.numpy_helper.to_array(i)
        for i in onnx_model(graph, weights, batch_size=1).graph.initializer
    }
    for name, array in weights.items():
        np.testing.assert_array_equal(initializers[name], array, err_msg=name)


def test_onnx_pools_do_not_use_ceil_mode() -> None:
    graph = graph_of(SINGLE_OPS["max_pool"])
    attributes = {a.name: a for a in onnx_model(graph, {}, batch_size=1).graph.node[0].attribute}
    assert "ceil_mode" not in attributes
    assert list(attributes["pads"].ints) == [
        1,
        1,
        1,
        2,
    ]  # 7 rows end with a whole window, 6 columns do not


def test_onnx_model_rejects_weights_of_another_shape() -> None:
    graph = graph_of(SINGLE_OPS["dense"])
    with pytest.raises(SteptimeError, match=r"dense1\.bias"):
        onnx_model(graph, {"dense1.weight": np.zeros((4, 5))}, batch_size=1)
