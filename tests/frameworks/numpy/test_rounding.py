"""Drawn rounding errors: of the right size, the same from the same seed, none where there is nothing to round."""

from __future__ import annotations

import numpy as np
import pytest

from steptime.core.errors import SteptimeError, Unsupported
from steptime.frameworks.numpy.rounding import SUMMED, UNITS, WINOGRAD, Rounding
from steptime.graph import Net


@pytest.mark.parametrize("precision", ["tf32", "bf16", "fp16", "fp8"])
def test_errors_fill_the_precisions_roundoff(precision: str) -> None:
    found = Rounding(precision, [0])(np.ones(10_000)) - 1
    assert 0.99 * UNITS[precision] < np.abs(found).max() <= UNITS[precision]
    assert abs(found.mean()) < 0.05 * UNITS[precision]


def test_the_nearest_numbers_are_those_that_every_machine_takes() -> None:
    values = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    assert (Rounding("fp16", [0], nearest=True)(values) == values.astype(np.float16)).all()


def test_in_fp32_there_is_nothing_to_take_the_nearest_of_because_its_errors_are_those_of_sums() -> (
    None
):
    values = np.ones(1000)
    assert (Rounding("fp32", [0], nearest=True)(values) == Rounding("fp32", [0])(values)).all()


def test_what_is_kept_from_step_to_step_is_rounded_as_fp32_is() -> None:
    for precision in ("fp32", "bf16"):
        errors = np.abs(Rounding(precision, [0]).kept(np.ones(10_000)) - 1)
        assert 0.99 * SUMMED * UNITS["fp32"] < errors.max() <= SUMMED * UNITS["fp32"] + 1e-16


def test_a_seed_gives_the_same_errors_and_another_gives_others() -> None:
    first, again, other = (Rounding("bf16", [seed])(np.ones(5)) for seed in (1, 1, 2))
    assert (first == again).all() and (first != other).all()


def test_every_pass_errs_alike_and_what_is_kept_errs_anew() -> None:
    rounding = Rounding("fp32", [0])
    first, kept = rounding(np.ones(5)), rounding.kept(np.ones(5))
    rounding.begin()
    assert (rounding(np.ones(5)) == first).all() and (rounding.kept(np.ones(5)) != kept).all()
    assert (rounding(np.ones(5)) != first).all()


def test_tokens_and_what_is_absent_stay_as_they_are() -> None:
    rounding = Rounding("bf16", [0])
    assert rounding(None) is None
    assert rounding(tokens := np.arange(3)) is tokens


@pytest.mark.parametrize(("rows", "roundoffs"), [(100, SUMMED), (80_000, 100 + SUMMED)])
def test_a_weight_s_gradient_errs_with_the_length_of_its_sum(rows: int, roundoffs: float) -> None:
    net = Net("one")
    layer = net.graph(net.dense(net.input(1), 4))["dense1"]
    right = np.ones((4, 20_000))
    compute = Rounding("fp32", [0]).around(
        lambda layer, weights, context, x: (x, lambda gradient: ([], {"weight": right}))
    )
    _, back = compute(layer, {}, None, np.ones(1))
    errors = np.abs(back(np.ones((rows, 4)))[1]["weight"] - 1)
    assert 0.9 * roundoffs < errors.max() / UNITS["fp32"] <= 1.001 * roundoffs


@pytest.mark.parametrize(("kernel", "times"), [(1, 1), (3, WINOGRAD)])
def test_winograd_s_way_costs_more_where_windows_overlap(kernel: int, times: float) -> None:
    net = Net("one")
    layer = net.graph(net.conv(net.input(1, 4, 4), 1, kernel, bias=False))["conv1"]
    one = {"weight": np.ones((1, 1, kernel, kernel))}

    def largest(precision: str) -> float:
        compute = Rounding(precision, [0]).around(lambda layer, weights, context, x: (x, None))
        return float(np.abs(compute(layer, one, None, np.ones(100_000))[0] - 1).max())

    assert largest("fp32+winograd") == pytest.approx(times * largest("fp32"), rel=0.01)
    assert largest("bf16+winograd") == largest("bf16")


def test_quantised_and_unknown_precisions_are_sentences() -> None:
    with pytest.raises(Unsupported, match="another network"):
        Rounding("int8", [0])
    with pytest.raises(SteptimeError, match="fp31"):
        Rounding("fp31", [0])
