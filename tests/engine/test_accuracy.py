from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from steptime.core.accuracy import explain_missing_accuracy
from steptime.core.errors import SteptimeError
from steptime.engine.accuracy import compare_outputs, sample_count

EXACT = np.array([[1.0, 2.0, 3.0], [4.0, 0.0, -4.0]], np.float32)


def test_compare_outputs_is_zero_for_equal_outputs() -> None:
    result = compare_outputs([EXACT], [EXACT])
    assert (result["largest_logit_error"], result["kl_divergence"], result["top1_agreement"]) == (
        0,
        0,
        1,
    )
    assert (result["samples"], result["positions"], result["broken_positions"]) == (2, 2, 0)


def test_compare_outputs_has_absolute_and_relative_errors() -> None:
    low = EXACT + np.array([[0.5, 0, 0], [0, 0, -0.1]], np.float32)
    result = compare_outputs([EXACT], [low])
    rms = np.sqrt(np.square(EXACT).mean())
    assert result["largest_logit_error"] == pytest.approx(0.5)
    assert result["mean_logit_error"] == pytest.approx(0.6 / 6)
    assert result["largest_relative_error"] == pytest.approx(0.5 / rms)
    assert result["mean_relative_error"] == pytest.approx(0.1 / rms)


def test_compare_outputs_divergence_is_from_exact_to_low() -> None:
    exact, low = np.log([[0.5, 0.5]]), np.log([[0.9, 0.1]])
    expected = 0.5 * np.log(0.5 / 0.9) + 0.5 * np.log(0.5 / 0.1)
    assert compare_outputs([exact], [low])["kl_divergence"] == pytest.approx(expected)


def test_compare_outputs_shift_has_error_but_no_divergence() -> None:
    result = compare_outputs([EXACT], [EXACT + 7])
    assert result["largest_logit_error"] == pytest.approx(7)
    assert result["kl_divergence"] == pytest.approx(0, abs=1e-12) and result["top1_agreement"] == 1


def test_compare_outputs_agreement_counts_positions() -> None:
    exact, low = np.eye(4)[None], np.eye(4)[None, [0, 1, 2, 0]]
    result = compare_outputs([exact], [low])
    assert (result["samples"], result["positions"], result["top1_agreement"]) == (1, 4, 0.75)
    assert result["top1_agreement_interval"] == pytest.approx([0.3006, 0.9544], abs=1e-4)


def test_compare_outputs_does_not_depend_on_batch_size() -> None:
    low = EXACT + np.array([[0.25], [0.5]], np.float32) * [1, 0, 0]
    apart = compare_outputs([EXACT[:1], EXACT[1:]], [low[:1], low[1:]])
    assert apart == compare_outputs([EXACT], [low])


def broken(places: Any) -> dict[str, Any]:
    low = EXACT.copy()
    low[places] = np.inf
    return compare_outputs([EXACT], [low])


def test_compare_outputs_counts_nonfinite_position_as_disagreement() -> None:
    result = broken((0, 1))
    assert (
        result["broken_positions"],
        result["top1_agreement"],
        result["largest_logit_error"],
    ) == (
        1,
        0.5,
        0,
    )


def test_compare_outputs_allows_all_positions_broken() -> None:
    result = broken((slice(None), 0))
    assert result["broken_positions"] == 2 and result["kl_divergence"] is None
    assert (
        explain_missing_accuracy(
            "fp16", {"accuracy": {**result, "reference": "fp32", "data": "synthetic", "task": None}}
        )
        == ""
    )


def test_compare_outputs_refuses_nonfinite_reference() -> None:
    with pytest.raises(SteptimeError, match="not finite"):
        compare_outputs([np.full((1, 2), np.nan)], [EXACT[:1, :2]])


@pytest.mark.parametrize(
    ("flops", "output_bytes", "expected"),
    [(1e6, 40, 64), (8.2e9, 4000, 12), (1e12, 40, 8), (1, 1 << 28, 8)],
)
def test_sample_count_is_smaller_for_large_networks(
    flops: float, output_bytes: int, expected: int
) -> None:
    assert sample_count(flops, output_bytes, "synthetic") == expected


def test_sample_count_covers_the_test_set_if_cheap() -> None:
    assert sample_count(4e7, 40, "test set") >= 10_000
    assert sample_count(1e9, 40, "test set") == 1000
