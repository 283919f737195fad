"""Errors against bounds, by item, safe against lucky draws and values that are not finite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from steptime.tasks.certify.judge import (
    FLOOR,
    SLACK,
    Deviation,
    deviation,
    judge,
    judge_dropout,
    judge_precision,
)

EXACT = {"outputs": {"outputs": np.array([[1.0, -2.0], [0.5, 1.0]])}}
UNIT = 1e-6


def judge_item(values: Any, allowed: float = 1e-5, exact: Any = EXACT) -> dict[str, Any]:
    item = next(iter(exact))
    deviations = {item: {name: Deviation(allowed, allowed) for name in exact[item]}}
    return judge({item: values}, exact, deviations, {item: UNIT})[0]


def off(by: float) -> dict[str, Any]:
    values = EXACT["outputs"]["outputs"].copy()
    values[1, 0] += by
    return {"outputs": values}


def test_judge_passes_error_within_bound() -> None:
    result = judge_item(off(2e-5))
    bound = SLACK * 1e-5 + FLOOR * UNIT * 2.0
    assert result["passed"] and result["where"] == "outputs[1, 0]"
    assert result["share"] == pytest.approx(2e-5 / bound)
    assert result["error"] == pytest.approx(1e-5) and result["bound"] == pytest.approx(bound / 2.0)


def test_judge_fails_error_beyond_bound() -> None:
    assert not judge_item(off(1e-4))["passed"]


def test_judge_fails_many_small_errors() -> None:
    exact = {"outputs": {"outputs": np.linspace(0.0, 1.0, 10_000)}}
    deviations = {"outputs": {"outputs": Deviation(1e-3, 1e-5)}}
    result = judge(
        {"outputs": {"outputs": exact["outputs"]["outputs"] + 1e-4}},
        exact,
        deviations,
        {"outputs": UNIT},
    )
    assert not result[0]["passed"]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_judge_fails_nonfinite_values(value: float) -> None:
    result = judge_item(off(value))
    assert not result["passed"] and result["share"] is None


def test_judge_fails_absent_misshapen_or_unknown_weight() -> None:
    right = EXACT["outputs"]["outputs"]
    assert judge_item({})["where"] == "outputs: absent"
    assert "shape (4,)" in judge_item({"outputs": right.ravel()})["where"]
    assert "extra" in judge_item({"outputs": right, "extra": right})["where"]


def test_judge_scales_zero_gradient_by_the_others() -> None:
    exact = {"gradients": {"a": np.array([1.0]), "b": np.array([0.0])}}
    assert judge_item({"a": np.array([1.0]), "b": np.array([0.0])}, 0.0, exact)["share"] == 0.0
    assert not judge_item({"a": np.array([1.0]), "b": np.array([1e-3])}, 0.0, exact)["passed"]


def test_judge_allows_each_weight_the_median_deviation() -> None:
    exact = {"gradients": {name: np.array([1.0]) for name in "abc"}}
    deviations = {
        "gradients": {
            "a": Deviation(1e-4, 1e-4),
            "b": Deviation(1e-4, 1e-4),
            "c": Deviation(0.0, 0.0),
        }
    }  # c had a lucky draw
    result = {
        "gradients": {"a": np.array([1.0]), "b": np.array([1.0]), "c": np.array([1.0 + 1e-4])}
    }
    assert judge(result, exact, deviations, {"gradients": UNIT})[0]["passed"]


def test_judge_allows_one_flipped_sign_in_a_small_weight() -> None:
    exact = {
        "optimizer step": {
            name: np.ones(32 if name == "small" else 3200) for name in ("a", "b", "small")
        }
    }
    deviations = {
        "optimizer step": {
            "a": Deviation(2.0, 0.05),
            "b": Deviation(2.0, 0.05),
            "small": Deviation(1e-3, 1e-3),
        }
    }
    result = {name: value.copy() for name, value in exact["optimizer step"].items()}
    result["small"][7] = -1.0
    assert judge({"optimizer step": result}, exact, deviations, {"optimizer step": UNIT})[0][
        "passed"
    ]
    result["a"][:100] = -1.0
    assert not judge({"optimizer step": result}, exact, deviations, {"optimizer step": UNIT})[0][
        "passed"
    ]


def test_judge_allows_one_moved_number_but_not_all_of_them() -> None:
    exact = {"gradients": {name: np.ones(1000) for name in "abcd"}}
    deviations = {
        "gradients": {
            "a": Deviation(0.1, 0.004),
            "b": Deviation(1e-3, 1e-4),
            "c": Deviation(1e-3, 1e-4),
            "d": Deviation(2.0, 1e-4),
        }
    }
    result = {name: value.copy() for name, value in exact["gradients"].items()}
    result["b"][7] += 0.1
    assert judge({"gradients": result}, exact, deviations, {"gradients": UNIT})[0]["passed"]
    result["b"][7] += 0.5  # as far as d alone, in which rounding decides everything
    assert not judge({"gradients": result}, exact, deviations, {"gradients": UNIT})[0]["passed"]
    result["b"] = exact["gradients"]["b"] + 0.02
    assert not judge({"gradients": result}, exact, deviations, {"gradients": UNIT})[0]["passed"]


def test_judge_stops_before_a_leap_of_the_loss() -> None:
    steps = {
        f"step {number}": np.float64(value) for number, value in enumerate([2.0, 1.8, 9.0, 3.0], 1)
    }
    exact = {**EXACT, "loss": {"loss": np.float64(2.0)}, "trajectory": steps}
    small = Deviation(1e-9, 1e-9)
    deviations = {
        "outputs": {"outputs": small},
        "loss": {"loss": small},
        "trajectory": dict.fromkeys(steps, small),
    }
    units = {"trajectory": UNIT}
    later = {"trajectory": {**steps, "step 3": np.float64(9.5), "step 4": np.float64(7.0)}}
    assert judge(later, exact, deviations, units)[0]["passed"]
    before = {"trajectory": {**steps, "step 2": np.float64(1.9)}}
    assert not judge(before, exact, deviations, units)[0]["passed"]


def test_judge_allows_loss_the_deviation_of_outputs_and_earlier_steps() -> None:
    steps = {f"step {number}": np.float64(2.0) for number in range(1, 5)}
    exact = {**EXACT, "loss": {"loss": np.float64(2.0)}, "trajectory": steps}
    small = Deviation(1e-9, 1e-9)
    deviations = {"outputs": {"outputs": Deviation(1e-4, 1e-4)}, "loss": {"loss": small}}
    deviations["trajectory"] = {name: small for name in steps} | {"step 3": Deviation(1e-2, 1e-2)}
    result = {"loss": {"loss": 2.0 + 2e-4}, "trajectory": {**steps, "step 4": np.float64(2.02)}}
    loss, trajectory = judge(result, exact, deviations, {"loss": UNIT, "trajectory": UNIT})
    assert loss["passed"] and trajectory["passed"] and trajectory["where"] == "step 4"
    late = {"loss": {"loss": 2.0}, "trajectory": {**steps, "step 2": np.float64(2.02)}}
    assert not judge(late, exact, deviations, {"loss": UNIT, "trajectory": UNIT})[1]["passed"]


def test_judge_stops_where_rounding_decides() -> None:
    steps = {f"step {number}": np.float64(2.0) for number in range(1, 7)}
    exact = {**EXACT, "loss": {"loss": np.float64(2.0)}, "trajectory": steps}
    deviations = {
        "outputs": {"outputs": Deviation(1e-6, 1e-6)},
        "loss": {"loss": Deviation(1e-6, 1e-6)},
    }
    chaos = {
        f"step {number}": Deviation(10.0 ** (number - 6), 10.0 ** (number - 6))
        for number in range(1, 7)
    }
    wild = {**steps, "step 6": np.float64(50.0)}
    units = {"trajectory": UNIT}
    entry = judge({"trajectory": wild}, exact, {**deviations, "trajectory": chaos}, units)[0]
    assert entry["passed"] and not entry["weak"]
    sooner = {
        name: Deviation(1e4 * value.largest, 1e4 * value.rms) for name, value in chaos.items()
    }
    assert judge({"trajectory": wild}, exact, {**deviations, "trajectory": sooner}, units)[0][
        "weak"
    ]


def test_judge_ignores_nonfinite_reference() -> None:
    exact = {"outputs": {"a": np.array([1.0]), "b": np.array([np.inf])}}
    deviations = {"outputs": {"a": Deviation(0.0, 0.0), "b": Deviation(np.inf, np.inf)}}
    assert judge(
        {"outputs": {"a": np.array([1.0]), "b": np.array([5.0])}},
        exact,
        deviations,
        {"outputs": UNIT},
    )[0]["passed"]


def test_judge_marks_wide_bound_as_weak() -> None:
    assert judge_item(off(1e-5), 1.0)["weak"] and not judge_item(off(1e-5), 1e-3)["weak"]


def test_deviation_has_largest_and_root_mean_square() -> None:
    assert deviation(np.array([3.0, -4.0]), np.zeros(2)) == (4.0, pytest.approx(np.sqrt(12.5)))
    assert deviation(np.array([np.nan]), np.zeros(1)) == (np.inf, np.inf)


def test_judge_dropout_compares_means_within_noise() -> None:
    rng = np.random.default_rng(0)
    right = {"rate 0.5": 4.0 + 0.01 * rng.standard_normal(64)}
    assert judge_dropout({"rate 0.5": 4.0 + 0.01 * rng.standard_normal(16)}, right, UNIT)["passed"]
    assert not judge_dropout({"rate 0.5": 4.05 + 0.01 * rng.standard_normal(16)}, right, UNIT)[
        "passed"
    ]


def precision_entry(error: float, *, odd: float = 0.0) -> dict[str, Any]:
    """Two arrays whose rounding is 1e-3; `odd` is the error of the second."""
    exact = {"outputs": {"a": np.ones(100), "b": np.ones(100)}}
    deviations = {"outputs": dict.fromkeys("ab", Deviation(1e-3, 1e-3))}
    evidence = {"outputs": {"a": np.ones(100) + error, "b": np.ones(100) + (odd or error)}}
    return judge_precision(evidence, exact, deviations, 1e-3)[0]


def test_judge_precision_fails_what_is_far_more_exact() -> None:
    assert precision_entry(5e-4)["passed"] and precision_entry(5e-5)["passed"]
    entry = precision_entry(1e-6)
    assert not entry["passed"] and "outputs" in entry["where"]


def test_judge_precision_passes_if_one_array_shows_the_rounding() -> None:
    assert precision_entry(1e-7, odd=5e-4)["passed"]


def test_judge_allows_what_rounding_decides_twice_its_size() -> None:
    exact = {"optimizer step": {"w": np.ones(100)}}
    deviations = {"optimizer step": {"w": Deviation(0.3, 0.3)}}

    def judge_step(values: Any) -> dict[str, Any]:
        evidence = {"optimizer step": {"w": values}}
        return judge(evidence, exact, deviations, {"optimizer step": UNIT})[0]

    assert judge_step(-0.9 * np.ones(100))["passed"] and judge_step(np.ones(100))["weak"]
    assert not judge_step(4.0 * np.ones(100))["passed"]


def test_judge_precision_ignores_arrays_that_show_no_rounding() -> None:
    exact = {"optimizer step": {"a": np.ones(100), "b": np.ones(100)}}
    deviations = {"optimizer step": {"a": Deviation(0.5, 0.5), "b": Deviation(1e-7, 1e-7)}}
    evidence = {"optimizer step": {"a": np.ones(100) + 1e-6, "b": np.ones(100) + 1e-7}}
    assert not judge_precision(evidence, exact, deviations, 1e-3)[0]["passed"]
    del evidence["optimizer step"]["a"], deviations["optimizer step"]["a"]
    assert judge_precision(evidence, exact, deviations, 1e-3) == []
