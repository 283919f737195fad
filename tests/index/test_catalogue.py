"""The catalogue is data; the rows must keep to it."""

from __future__ import annotations

from steptime.index.catalogue import DIMENSIONS, METRICS, format_value


def test_no_name_is_both_a_dimension_and_a_metric() -> None:
    assert not set(DIMENSIONS) & set(METRICS)


def test_no_name_is_a_word_of_the_grammar() -> None:
    assert not {"x", "y", "by", "split", "log"} & {*DIMENSIONS, *METRICS}


def test_a_number_is_spelled_as_a_question_writes_it() -> None:
    assert [format_value(value) for value in (64.0, 1_048_576.0, 0.5, 8, "fp32")] == [
        "64",
        "1048576",
        "0.5",
        "8",
        "fp32",
    ]
