"""Slices that become one split."""

from __future__ import annotations

from steptime.frameworks.pytorch.slice_groups import slice_groups
from steptime.graph import Graph, Net


def sliced_graph(*ends: tuple[int, int]) -> Graph:
    net = Net("cut")
    x = net.dense(net.input(4, 3), 6)
    pieces = [net.slice(x, start, stop) for start, stop in ends]
    return net.graph(net.concat(*pieces, axis=-1) if len(pieces) > 1 else pieces[0])


def test_slice_groups_order_slices_that_cover_a_tensor() -> None:
    groups = slice_groups(sliced_graph((4, 6), (0, 3), (3, 4)))
    assert [piece.name for piece in groups["slice1"]] == ["slice2", "slice3", "slice1"]
    assert groups["slice2"] == groups["slice3"] == []


def test_slice_groups_ignore_gaps_and_overlaps() -> None:
    assert (
        slice_groups(sliced_graph((0, 2), (3, 6)))
        == slice_groups(sliced_graph((0, 4), (2, 6)))
        == slice_groups(sliced_graph((0, 5)))
        == {}
    )


def test_slice_groups_ignore_duplicate_slices() -> None:
    assert slice_groups(sliced_graph((0, 3), (0, 3), (3, 6))) == {}


def test_slice_groups_ignore_tokens() -> None:
    net = Net("tokens")
    tokens = net.tokens(4, 9)
    graph = net.graph(
        net.add(*(net.embedding(net.slice(tokens, at, at + 2), 9, 3) for at in (0, 2)))
    )
    assert slice_groups(graph) == {}
