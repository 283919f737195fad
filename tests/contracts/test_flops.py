"""Costs by closed form against what PyTorch counts while it computes, for every network."""

from __future__ import annotations

import pytest

from steptime import networks
from steptime.graph import Graph, Net

torch = pytest.importorskip("torch", reason="PyTorch counts, and it is not installed")


def counted(graph: Graph) -> tuple[int, int]:
    """Forward and backward by `torch.utils.flop_counter`, on the lowered network, batch 1. On the device without
    memory: shapes alone are computed, recurrent layers run step by step, and attention as the products of its
    definition (a fused kernel computes the scores again on the way back, which is its own affair)."""
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
def test_costs_equal_the_counted_ones(name: str) -> None:
    graph = networks.load(name).graph
    assert (graph.forward_flops, graph.backward_flops) == counted(graph)


def test_attention_between_two_lengths_costs_what_is_counted() -> None:
    net = Net("cross")
    tokens = net.tokens(7, 9)
    query, keys = (net.embedding(net.slice(tokens, *ends), 9, 6) for ends in ((0, 3), (3, 7)))
    graph = net.graph(net.attention(query, keys, keys, heads=3))
    assert graph.forward_flops == 2 * 2 * 3 * 4 * 6
    assert (graph.forward_flops, graph.backward_flops) == counted(graph)
