"""One question, several ways to write it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steptime.core.errors import SteptimeError, UnknownName
from steptime.index.catalogue import DIMENSIONS, METRICS
from steptime.index.query import CHOICES, Query, bounds, describe_condition, from_url

WORDS = sorted(name for name, known in DIMENSIONS.items() if not known.number)
keys = st.builds(lambda name, no: "!" * no + name, st.sampled_from(WORDS), st.booleans())
conditions = st.dictionaries(
    keys, st.lists(st.text(), min_size=1, max_size=3, unique=True).map(tuple), max_size=3
).map(lambda found: tuple(found.items()))
choices = {name: st.sampled_from(words) for name, words in CHOICES.items() if name != "scaling"}
moments = st.sampled_from(["", "2026", "2026-01-31", "2026-01-31T12:00:59"])
queries = st.builds(
    lambda sizes, base, **words: Query(
        **words, **sizes, rel=f"{words['x']}:{base}" if base and words["x"] in DIMENSIONS else ""
    ),
    sizes=st.sampled_from(
        [{}, {"scaling": "weak", "batch": "128"}, {"scaling": "strong", "batch": "7"}]
    ),
    base=st.text(),
    since=moments,
    until=moments,
    y=st.sampled_from(sorted(METRICS)),
    x=st.sampled_from(sorted([*METRICS, *DIMENSIONS])),
    by=st.lists(st.sampled_from(sorted(DIMENSIONS)), unique=True, max_size=3).map(tuple),
    split=st.sampled_from(["", *sorted(DIMENSIONS)]),
    where=conditions,
    series=st.lists(
        st.tuples(st.text().filter(lambda name: "|" not in name), conditions), max_size=2
    ).map(tuple),
    **choices,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(queries)
def test_query_reads_back_from_its_url(query: Query) -> None:
    assert from_url(query.to_url()) == query


def test_query_url_omits_defaults() -> None:
    assert from_url("y=throughput&x=model&log=&by=precision&agg=best").to_url() == "by=precision"


def test_query_takes_several_names_in_one_by() -> None:
    assert from_url("by=framework,mode&by=precision").by == ("framework", "mode", "precision")


@pytest.mark.parametrize(
    ("scaling", "name"), [("weak", "replica_batch"), ("strong", "effective_batch")]
)
def test_query_scaling_decides_which_batch_is_filtered(scaling: str, name: str) -> None:
    assert (name, ("128",)) in from_url(f"scaling={scaling}&batch=128").conditions


def test_query_omits_failed_and_implausible_results_by_default() -> None:
    assert dict(from_url("").conditions) == {"status": ("ok",), "plausible": ("yes",)}
    assert dict(from_url("status=crashed&!plausible=yes").conditions) == {
        "status": ("crashed",),
        "!plausible": ("yes",),
    }


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("8..64", (8, 64)),
        ("8..", (8, None)),
        ("..64", (None, 64)),
        ("8", (8, 8)),
        ("..", (None, None)),
    ],
)
def test_bounds_reads_two_dots_as_a_range(text: str, found: Any) -> None:
    assert bounds(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "y=througput",
        "x=modell",
        "by=framwork",
        "split=y",
        "precison=fp32",
        "log=z",
        "y=model",
        "agg=all",
        "s=a|b=c",
    ],
)
def test_query_names_an_unknown_name(text: str) -> None:
    with pytest.raises(UnknownName):
        from_url(text)


@pytest.mark.parametrize(
    "text",
    [
        "replica_batch=many",
        "batch=8",
        "scaling=weak",
        "rel=framework:pytorch",
        "by=mode&rel=mode",
        "since=yesterday",
        "until=2026-1-1",
        "since=2026-02-30",
        "since=2026-01-31T25",
        "x=loss&by=mode&rel=mode:eager",
        "by=mode&rel=mode:fewest",
    ],
)
def test_query_refuses_contradictory_parameters(text: str) -> None:
    with pytest.raises(SteptimeError):
        from_url(text)


def test_describe_condition_has_a_label_if_the_value_is_unclear() -> None:
    told = [
        describe_condition("model", "a", "b"),
        describe_condition("!replica_batch", "8"),
        describe_condition("plausible", "no"),
    ]
    assert told == ["a or b", "not replica batch 8", "plausible no"]


@pytest.mark.parametrize(
    ("text", "told"), [("64.0", "64"), ("1e3", "1000"), ("8.0..", "8.0.."), ("nan", "nan")]
)
def test_query_gives_numbers_one_spelling(text: str, told: str) -> None:
    assert from_url(f"replica_batch={text}").where == (("replica_batch", (told,)),)


def test_query_expands_efficiency_to_its_parameters() -> None:
    assert from_url("y=efficiency&model=m") == from_url(
        "y=throughput_per_device&x=devices&rel=devices:fewest&model=m"
    )
    assert from_url("y=efficiency&x=model&by=devices").x == "model"


def test_query_series_inherits_shared_filters_and_may_override_defaults() -> None:
    ((name, where),) = from_url("phase=training&s=odd|plausible=no").branches
    assert (name, dict(where)) == (
        "odd",
        {"phase": ("training",), "plausible": ("no",), "status": ("ok",)},
    )


def test_query_of_bytes_that_are_not_utf8_is_refused() -> None:
    with pytest.raises(SteptimeError, match="A query is text in UTF-8"):
        from_url("model=caf\udce9")
