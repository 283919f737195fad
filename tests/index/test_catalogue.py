"""The catalogue is data; the rows must keep to it."""

from __future__ import annotations

from steptime.index.catalogue import DIMENSIONS, METRICS, format_value


def test_catalogue_has_no_name_that_is_both_dimension_and_metric() -> None:
    assert not set(DIMENSIONS) & set(METRICS)


def test_catalogue_has_no_name_that_is_a_query_parameter() -> None:
    assert not {"x", "y", "by", "split", "log"} & {*DIMENSIONS, *METRICS}


def test_format_value_spells_numbers_as_queries_do() -> None:
    assert [format_value(value) for value in (64.0, 1_048_576.0, 0.5, 8, "fp32")] == [
        "64",
        "1048576",
        "0.5",
        "8",
        "fp32",
    ]
