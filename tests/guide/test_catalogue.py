"""The catalogue is data; the rows must keep to it."""

from __future__ import annotations

from steptime.guide.catalogue import DIMENSIONS, METRICS


def test_no_name_is_both_a_dimension_and_a_metric() -> None:
    assert not set(DIMENSIONS) & set(METRICS)


def test_no_name_is_a_word_of_the_grammar() -> None:
    assert not {"x", "y", "by", "split", "log"} & {*DIMENSIONS, *METRICS}
