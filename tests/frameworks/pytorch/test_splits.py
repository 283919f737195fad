from __future__ import annotations

from steptime.frameworks.pytorch.splits import splits
from steptime.graph import Graph, Net


def sliced(*ends: tuple[int, int]) -> Graph:
    net = Net("cut")
    x = net.dense(net.input(4, 3), 6)
    pieces = [net.slice(x, start, stop) for start, stop in ends]
    return net.graph(net.concat(*pieces, axis=-1) if len(pieces) > 1 else pieces[0])


def test_slices_of_a_whole_are_one_cut_in_the_order_of_their_places() -> None:
    found = splits(sliced((4, 6), (0, 3), (3, 4)))
    assert [piece.name for piece in found["slice1"]] == ["slice2", "slice3", "slice1"]
    assert found["slice2"] == found["slice3"] == []


def test_slices_that_leave_a_gap_or_overlap_stay_apart() -> None:
    assert (
        splits(sliced((0, 2), (3, 6)))
        == splits(sliced((0, 4), (2, 6)))
        == splits(sliced((0, 5)))
        == {}
    )


def test_a_slice_used_twice_is_no_cut() -> None:
    assert splits(sliced((0, 3), (0, 3), (3, 6))) == {}


def test_tokens_have_no_way_back_and_stay_apart() -> None:
    net = Net("tokens")
    tokens = net.tokens(4, 9)
    graph = net.graph(
        net.add(*(net.embedding(net.slice(tokens, at, at + 2), 9, 3) for at in (0, 2)))
    )
    assert splits(graph) == {}
