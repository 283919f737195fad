"""A named network."""

from __future__ import annotations

import pytest

from steptime.core.errors import UnknownName, WrongGraph
from steptime.graph import Net, Tensor, network


def test_network_suggests_the_nearest_op_for_an_unknown_one() -> None:
    @network("typo", title="", source="")
    def typo(net: Net) -> Tensor:
        return net.convv(net.input(1, 4, 4), 2, 3)  # type: ignore[attr-defined, no-any-return]

    with pytest.raises(WrongGraph, match=r"typo: No layer op 'convv'. Did you mean 'conv'"):
        _ = typo.graph


def test_network_reports_the_line_of_a_mistake() -> None:
    @network("typo", title="", source="")
    def typo(net: Net) -> Tensor:
        return net.dense(net.input(4), "ten".length)  # type: ignore[attr-defined]

    with pytest.raises(WrongGraph, match=r"AttributeError.*length.*line \d+ of"):
        _ = typo.graph


def test_network_of_a_language_model_counts_tokens() -> None:
    @network("language_model", title="", source="", unit="tokens")
    def language_model(net: Net) -> Tensor:
        return net.embedding(net.tokens(7, 10), 10, 10)

    assert language_model.units_per_sample == {"tokens": 7}


def test_network_of_a_translation_counts_sentences_and_tokens() -> None:
    @network("translation", title="", source="", unit="sentences")
    def translation(net: Net) -> Tensor:
        return net.embedding(net.slice(net.tokens(7, 10), 4, 7), 10, 10)

    assert translation.units_per_sample == {"sentences": 1, "source_tokens": 4, "target_tokens": 3}


def test_network_rejects_an_unknown_unit() -> None:
    with pytest.raises(UnknownName, match=r"mine: No unit 'image'. Did you mean 'images'"):
        network("mine", title="", source="", unit="image")(lambda net: net.input(4))


@pytest.mark.parametrize("wrong", [lambda net: 1 / 0, lambda net: net.dense(net.input(4))])
def test_network_explains_code_that_fails(wrong) -> None:
    with pytest.raises(WrongGraph, match="mine cannot be built"):
        _ = network("mine", title="Mine", source="here")(wrong).graph
