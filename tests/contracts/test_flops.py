"""FLOPs by closed form equal those that PyTorch counts while it computes, for every network."""

from __future__ import annotations

import pytest

from steptime import networks
from steptime.graph import Graph, Net

torch = pytest.importorskip("torch", reason="PyTorch, which counts, is not installed")


def count_flops(graph: Graph) -> tuple[int, int]:
    """Forward and backward FLOPs by `torch.utils.flop_counter`, on the lowered network, batch 1.

    On the meta device, only shapes are computed, recurrent layers run step by step, and attention
    is the products of its definition. A fused kernel would compute the scores again in the
    backward pass."""
    from torch.utils.flop_counter import FlopCounterMode

    from steptime.frameworks.pytorch.lowering import lower_graph

    with torch.device("meta"):
        module = lower_graph(graph).to("meta")
        tokens = graph.input.vocabulary > 0
        values = torch.zeros(
            (1, *graph.input.shape), dtype=torch.int64 if tokens else torch.float32
        )
        target = torch.zeros(graph[graph.output].shape[:-1] or (1,), dtype=torch.int64)
    with FlopCounterMode(display=False) as counter:
        output = module(values)
        forward = counter.get_total_flops()
        torch.nn.functional.cross_entropy(output.flatten(0, -2), target.flatten()).backward()
        return forward, counter.get_total_flops() - forward


@pytest.mark.parametrize("name", networks.catalogue())
def test_flops_equal_those_that_pytorch_counts(name: str) -> None:
    graph = networks.load(name).graph
    assert (graph.forward_flops, graph.backward_flops) == count_flops(graph)


def test_attention_flops_between_two_lengths_equal_the_count() -> None:
    net = Net("cross")
    tokens = net.tokens(7, 9)
    query, keys = (net.embedding(net.slice(tokens, *ends), 9, 6) for ends in ((0, 3), (3, 7)))
    graph = net.graph(net.attention(query, keys, keys, heads=3))
    assert graph.forward_flops == 2 * 2 * 3 * 4 * 6
    assert (graph.forward_flops, graph.backward_flops) == count_flops(graph)
