"""One question, several ways to write it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steptime.core.errors import SteptimeError, UnknownWord
from steptime.guide.catalogue import DIMENSIONS, METRICS
from steptime.guide.query import Query, from_url

ROWS: list[dict[str, Any]] = [
    {"model": "a", "precision": "fp32", "replica_batch": 1, "throughput": 10.0},
    {"model": "a", "precision": "bf16", "replica_batch": 8, "throughput": 20.0},
    {"model": "b", "precision": "fp32", "replica_batch": 64, "throughput": None},
]
words = st.text(min_size=1).filter(lambda text: ".." not in text)
keys = st.builds(lambda name, no: "!" * no + name, st.sampled_from(sorted(DIMENSIONS)), st.booleans())
conditions = st.dictionaries(keys, st.lists(words, min_size=1, max_size=3, unique=True).map(tuple), max_size=3)


@given(
    y=st.sampled_from(sorted(METRICS)),
    x=st.sampled_from(sorted([*METRICS, *DIMENSIONS])),
    by=st.lists(st.sampled_from(sorted(DIMENSIONS)), unique=True, max_size=3).map(tuple),
    split=st.sampled_from(["", *sorted(DIMENSIONS)]),
    log=st.sampled_from(["", "x", "y", "xy"]),
    where=conditions.map(lambda found: tuple(found.items())),
)
def test_a_query_written_as_an_address_reads_back_the_same(**settings: Any) -> None:
    query = Query(**settings)
    assert from_url(query.to_url()) == query


def test_defaults_are_left_out_of_the_address() -> None:
    assert from_url("y=throughput&x=model&log=&by=precision").to_url() == "by=precision"


def test_the_same_key_twice_is_or_and_different_keys_are_and() -> None:
    assert len(from_url("precision=fp32&precision=bf16").of(ROWS)) == 2
    assert len(from_url("precision=fp32&model=b").of(ROWS)) == 0


def test_an_exclamation_mark_excludes() -> None:
    assert [row["precision"] for row in from_url("!precision=fp32").of(ROWS)] == ["bf16"]


@pytest.mark.parametrize(("text", "count"), [("1..8", 2), ("2..", 1), ("..1", 1), ("9..10", 0)])
def test_two_dots_are_a_range(text: str, count: int) -> None:
    assert len(from_url(f"replica_batch={text}").of(ROWS)) == count


def test_a_range_of_words_is_refused() -> None:
    with pytest.raises(SteptimeError, match="A range needs numbers"):
        from_url("model=a..b").of(ROWS)


def test_a_row_without_the_metric_is_not_found() -> None:
    assert all(row["model"] == "a" for row in from_url("x=model").of(ROWS))


@pytest.mark.parametrize(
    "text", ["y=througput", "x=modell", "by=framwork", "split=y", "precison=fp32", "log=z", "y=model"]
)
def test_an_unknown_word_is_named(text: str) -> None:
    with pytest.raises(UnknownWord):
        from_url(text)
