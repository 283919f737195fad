"""Graphs as modules of generated code."""

from __future__ import annotations

import re
import traceback
from typing import Any

import numpy as np
import pytest

from steptime import networks
from steptime.core.errors import Unsupported
from steptime.frameworks.pytorch.slice_groups import slice_groups
from steptime.graph import Net
from steptime.graph.op import Op


def lower_graph(graph: Any, **settings: Any) -> Any:
    from steptime.frameworks.pytorch.lowering import lower_graph

    return lower_graph(graph, **settings)


@pytest.mark.parametrize("name", networks.catalogue())
def test_generated_code_has_one_line_per_layer(name: str) -> None:
    import torch

    graph = networks.load(name).graph
    with torch.device("meta"):  # the large ones would fill the memory
        head, *body = lower_graph(graph).source.splitlines()
    lines = [line for line in body if "self." not in line]
    assert head.startswith("def forward(self, x")
    assert len(body) - len(lines) <= 2  # the dictionaries, and whether to drop
    merged = sum(slices == [] for slices in slice_groups(graph).values())
    # One for each layer but the input, and the return.
    assert len(lines) == len(graph.layers) - merged
    assert all(line.startswith("    ") and not line.startswith("     ") for line in lines)


def test_generated_code_appears_in_tracebacks(graph_of: Any, torch: Any) -> None:
    module = lower_graph(graph_of("residual"))
    with pytest.raises(RuntimeError) as caught:
        module(torch.zeros(4, 7, 8, 8))
    assert "# conv1" in "".join(traceback.format_exception(caught.value))


def test_lower_graph_names_an_op_without_lowering() -> None:
    class Strange(Op):
        pass

    net = Net("odd")
    graph = net.graph(net.layer(Strange(), net.input(3), name="here"))
    with pytest.raises(Unsupported, match=r"odd.*'strange'.*'here'"):
        lower_graph(graph)


def test_lowered_module_has_an_ordinary_state_dict(graph_of: Any, torch: Any) -> None:
    graph = graph_of("residual")
    module = lower_graph(graph)
    assert len(module.state_dict()) == len(graph.weights)
    assert sum(p.numel() for p in module.parameters()) == graph.trainable_parameters
    other = lower_graph(graph).double()
    other.load_state_dict(module.state_dict())
    assert all(p.dtype is torch.float64 for p in other.parameters())
    assert other(torch.zeros(2, 3, 8, 8, dtype=torch.float64)).shape == (2, 5)


def test_generated_code_deletes_activations_after_their_last_use(graph_of: Any) -> None:
    lines = lower_graph(graph_of("residual")).source.splitlines()
    for variable in (f"x{index}" for index in range(len(graph_of("residual").layers) - 1)):
        last = [line for line in lines if re.search(rf"\b{variable}\b", line)][-1]
        assert re.search(rf"; del .*\b{variable}\b", last), last


def test_lowered_module_needs_at_most_three_python_calls(graph_of: Any, torch: Any) -> None:
    from sys import setprofile

    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    module, values = lower_graph(graph_of("perceptron")), torch.zeros(1, 6)
    setprofile(count)
    module(values)
    setprofile(None)
    assert calls <= 3  # two of nn.Module, and forward


@pytest.mark.parametrize("padding", [((0, 1), (2, 0)), ((2, 2), (2, 2)), ((0, 0), (1, 1))])
@pytest.mark.parametrize("ceil", [False, True])
def test_average_pool_counts_only_cells_of_the_image(padding: Any, ceil: bool, torch: Any) -> None:
    from steptime.graph.ops import AveragePool

    net = Net("pool")
    graph = net.graph(
        net.layer(AveragePool((3, 3), (2, 2), padding, ceil), net.input(1, 6, 7), name="pool")
    )
    image = np.random.default_rng(0).standard_normal((6, 7)).astype(np.float32)
    output = lower_graph(graph)(torch.from_numpy(image)[None, None])[0, 0].numpy()
    (top, _), (left, _) = padding
    for (row, column), value in np.ndenumerate(output):
        first, second = 2 * row - top, 2 * column - left
        window = image[max(0, first) : first + 3, max(0, second) : second + 3]
        np.testing.assert_allclose(value, window.mean(), rtol=1e-5)


def test_generated_code_does_not_keep_the_output_of_a_tied_embedding(graph_of: Any) -> None:
    *_, last, end = lower_graph(graph_of("transformer")).source.splitlines()
    assert "# tied_dense1" in last and 'p["embedding1__weight"]' in last and "x1," not in last
    assert end.strip().startswith("return")


def test_recurrent_layers_call_the_library(graph_of: Any) -> None:
    source = lower_graph(graph_of("cells")).source
    assert all(call in source for call in ("= gru(", "= rnn_tanh(", "= rnn_relu("))
