"""A named network."""

from __future__ import annotations

import pytest

from steptime.core.errors import UnknownWord, WrongGraph
from steptime.graph import Net, Tensor, network


def test_an_unknown_layer_gets_the_nearest_known_kind() -> None:
    @network("typo", title="", source="")
    def typo(net: Net) -> Tensor:
        return net.convv(net.input(1, 4, 4), 2, 3)  # type: ignore[attr-defined, no-any-return]

    with pytest.raises(WrongGraph, match=r"typo: No layer op 'convv'. Did you mean 'conv'"):
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

    assert words.units_per_sample == {"tokens": 7}


def test_a_translation_counts_sentences_and_the_tokens_of_both_languages() -> None:
    @network("translation", title="", source="", unit="sentences")
    def translation(net: Net) -> Tensor:
        return net.embedding(net.slice(net.tokens(7, 10), 4, 7), 10, 10)

    assert translation.units_per_sample == {"sentences": 1, "source_tokens": 4, "target_tokens": 3}


def test_a_unit_is_one_of_a_closed_list() -> None:
    with pytest.raises(UnknownWord, match=r"mine: No unit 'image'. Did you mean 'images'"):
        network("mine", title="", source="", unit="image")(lambda net: net.input(4))


@pytest.mark.parametrize("wrong", [lambda net: 1 / 0, lambda net: net.dense(net.input(4))])
def test_a_network_whose_code_fails_is_a_sentence(wrong) -> None:
    with pytest.raises(WrongGraph, match="mine cannot be built"):
        _ = network("mine", title="Mine", source="here")(wrong).graph
