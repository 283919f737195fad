"""A named network."""

from __future__ import annotations

import pytest

from steptime.core.errors import WrongGraph
from steptime.graph import Net, Tensor, network


def test_an_unknown_layer_gets_the_nearest_known_kind() -> None:
    @network("typo", title="", source="")
    def typo(net: Net) -> Tensor:
        return net.convv(net.input(1, 4, 4), 2, 3)  # type: ignore[attr-defined, no-any-return]

    with pytest.raises(WrongGraph, match=r"typo: No layer kind 'convv'. Did you mean 'conv'"):
        _ = typo.graph


def test_a_mistake_beside_the_net_is_told_with_its_line() -> None:
    @network("typo", title="", source="")
    def typo(net: Net) -> Tensor:
        return net.dense(net.input(4), "ten".length)  # type: ignore[attr-defined]

    with pytest.raises(WrongGraph, match=r"AttributeError.*length.*line \d+ of"):
        _ = typo.graph


def test_a_language_model_counts_tokens() -> None:
    @network("words", title="", source="", unit="tokens")
    def words(net: Net) -> Tensor:
        return net.embedding(net.tokens(7, 10), 10, 10)

    assert words.units_per_sample == 7


@pytest.mark.parametrize("wrong", [lambda net: 1 / 0, lambda net: net.dense(net.input(4), "ten")])
def test_a_network_whose_code_fails_is_a_sentence(wrong) -> None:
    with pytest.raises(WrongGraph, match="mine can not be built"):
        _ = network("mine", title="Mine", source="here")(wrong).graph
