"""One question, several ways to write it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steptime.core.errors import SteptimeError, UnknownWord
from steptime.guide.catalogue import DIMENSIONS, METRICS
from steptime.guide.query import CHOICES, Query, bounds, from_url

WORDS = sorted(name for name, known in DIMENSIONS.items() if not known.number)
keys = st.builds(lambda name, no: "!" * no + name, st.sampled_from(WORDS), st.booleans())
conditions = st.dictionaries(keys, st.lists(st.text(), min_size=1, max_size=3, unique=True).map(tuple), max_size=3).map(
    lambda found: tuple(found.items())
)
choices = {name: st.sampled_from(words) for name, words in CHOICES.items() if name != "scaling"}
queries = st.builds(
    Query,
    y=st.sampled_from(sorted(METRICS)),
    x=st.sampled_from(sorted([*METRICS, *DIMENSIONS])),
    by=st.lists(st.sampled_from(sorted(DIMENSIONS)), unique=True, max_size=3).map(tuple),
    split=st.sampled_from(["", *sorted(DIMENSIONS)]),
    where=conditions,
    series=st.lists(st.tuples(st.text().filter(lambda name: "|" not in name), conditions), max_size=2).map(tuple),
    **choices,
)


@given(queries)
def test_a_query_written_as_an_address_reads_back_the_same(query: Query) -> None:
    assert from_url(query.to_url()) == query


def test_defaults_are_left_out_of_the_address() -> None:
    assert from_url("y=throughput&x=model&log=&by=precision&agg=best").to_url() == "by=precision"


def test_several_names_may_stand_behind_one_by() -> None:
    assert from_url("by=framework,mode&by=precision").by == ("framework", "mode", "precision")


@pytest.mark.parametrize(("scaling", "name"), [("weak", "replica_batch"), ("strong", "effective_batch")])
def test_scaling_says_which_batch_is_meant(scaling: str, name: str) -> None:
    assert (name, ("128",)) in from_url(f"scaling={scaling}&batch=128").conditions


def test_failures_and_the_impossible_are_left_out_unless_asked_for() -> None:
    assert dict(from_url("").conditions) == {"status": ("ok",), "plausible": ("yes",)}
    assert dict(from_url("status=crashed&!plausible=yes").conditions) == {
        "status": ("crashed",),
        "!plausible": ("yes",),
    }


@pytest.mark.parametrize(
    ("text", "found"),
    [("8..64", (8, 64)), ("8..", (8, None)), ("..64", (None, 64)), ("8", (8, 8)), ("..", (None, None))],
)
def test_two_dots_are_a_range(text: str, found: Any) -> None:
    assert bounds(text) == found


@pytest.mark.parametrize(
    "text",
    ["y=througput", "x=modell", "by=framwork", "split=y", "precison=fp32", "log=z", "y=model", "agg=all", "s=a|b=c"],
)
def test_an_unknown_word_is_named(text: str) -> None:
    with pytest.raises(UnknownWord):
        from_url(text)


@pytest.mark.parametrize(
    "text", ["replica_batch=many", "batch=8", "scaling=weak", "rel=framework:pytorch", "by=mode&rel=mode"]
)
def test_what_does_not_go_together_is_refused(text: str) -> None:
    with pytest.raises(SteptimeError):
        from_url(text)
