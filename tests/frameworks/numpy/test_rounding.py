"""Random rounding errors: their size, their seed, and what is not rounded."""

from __future__ import annotations

import numpy as np
import pytest

from steptime.core.errors import SteptimeError, Unsupported
from steptime.frameworks.numpy.rounding import FAST, SUMMED, UNITS, Rounding
from steptime.graph import Net


@pytest.mark.parametrize("precision", ["tf32", "bf16", "fp16", "fp8"])
def test_rounding_errors_fill_the_unit_roundoff(precision: str) -> None:
    errors = Rounding(precision, [0])(np.ones(10_000)) - 1
    assert 0.99 * UNITS[precision] < np.abs(errors).max() <= UNITS[precision]
    assert abs(errors.mean()) < 0.05 * UNITS[precision]


def test_rounding_to_nearest_equals_a_cast_to_fp16() -> None:
    values = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    assert (Rounding("fp16", [0], nearest=True)(values) == values.astype(np.float16)).all()


def test_rounding_to_nearest_changes_nothing_in_fp32() -> None:
    values = np.ones(1000)
    assert (Rounding("fp32", [0], nearest=True)(values) == Rounding("fp32", [0])(values)).all()


def test_round_state_errs_like_fp32() -> None:
    for precision in ("fp32", "bf16"):
        errors = np.abs(Rounding(precision, [0]).round_state(np.ones(10_000)) - 1)
        assert 0.99 * SUMMED * UNITS["fp32"] < errors.max() <= SUMMED * UNITS["fp32"] + 1e-16


def test_rounding_errors_depend_on_the_seed() -> None:
    first, again, other = (Rounding("bf16", [seed])(np.ones(5)) for seed in (1, 1, 2))
    assert (first == again).all() and (first != other).all()


def test_begin_pass_repeats_errors_but_not_those_of_the_state() -> None:
    rounding = Rounding("fp32", [0])
    first = rounding(np.ones(5))
    state = rounding.round_state(np.ones(5))
    rounding.begin_pass()
    assert (rounding(np.ones(5)) == first).all() and (
        rounding.round_state(np.ones(5)) != state
    ).all()
    assert (rounding(np.ones(5)) != first).all()


def test_rounding_leaves_tokens_and_none_alone() -> None:
    rounding = Rounding("bf16", [0])
    assert rounding(None) is None
    assert rounding(tokens := np.arange(3)) is tokens


@pytest.mark.parametrize(("rows", "roundoffs"), [(100, SUMMED), (80_000, 100 + SUMMED)])
def test_rounding_of_a_weight_gradient_grows_with_its_sum(rows: int, roundoffs: float) -> None:
    net = Net("one")
    layer = net.graph(net.dense(net.input(1), 4))["dense1"]
    right = np.ones((4, 20_000))
    compute = Rounding("fp32", [0]).wrap(
        lambda layer, weights, context, x: (x, lambda gradient: ([], {"weight": right}))
    )
    _, back = compute(layer, {}, None, np.ones(1))
    errors = np.abs(back(np.ones((rows, 4)))[1]["weight"] - 1)
    assert 0.9 * roundoffs < errors.max() / UNITS["fp32"] <= 1.001 * roundoffs


@pytest.mark.parametrize(("kernel", "times"), [(1, 1), (3, FAST)])
def test_rounding_is_larger_with_winograd_if_windows_overlap(kernel: int, times: float) -> None:
    net = Net("one")
    layer = net.graph(net.conv(net.input(1, 4, 4), 1, kernel, bias=False))["conv1"]
    weights = {"weight": np.ones((1, 1, kernel, kernel))}

    def largest(precision: str) -> float:
        compute = Rounding(precision, [0]).wrap(lambda layer, weights, context, x: (x, None))
        return float(np.abs(compute(layer, weights, None, np.ones(100_000))[0] - 1).max())

    assert largest("fp32+fast") == pytest.approx(times * largest("fp32"), rel=0.01)
    assert largest("bf16+fast") == largest("bf16")


def test_rounding_rejects_int8_and_unknown_precisions() -> None:
    with pytest.raises(Unsupported, match="another network"):
        Rounding("int8", [0])
    with pytest.raises(SteptimeError, match="fp31"):
        Rounding("fp31", [0])
