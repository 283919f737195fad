from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from steptime.core.case import Case
from steptime.core.errors import Unsupported
from steptime.data.synthetic import synthetic_batch
from steptime.frameworks import onnxruntime as folder
from steptime.graph import Work

SETTINGS: dict[str, Any] = {"framework": "onnxruntime", "phase": "inference", "mode": "graph", "batch_size": 4}
KERNELS = ("QLinearConv", "QGemm")
CASE = Case(workload="images", precision="int8", **SETTINGS)


@pytest.fixture
def work(work_of: Callable[[str], Work]) -> Work:
    own = work_of("images")
    return replace(own, calibration=tuple(synthetic_batch(own.graph, 4, seed) for seed in (1, 2, 3)))


@pytest.fixture
def program(work: Work) -> Any:
    return folder.lower(work, CASE)


def test_int8_is_near_fp32_and_not_the_same(work: Work, program: Any) -> None:
    exact = folder.lower(work, replace(CASE, precision="fp32")).predict(work.batch)
    error = np.abs(program.predict(work.batch) - exact)
    assert 1e-6 < error.max() < 0.1 * np.abs(exact).max()


def test_the_kernels_of_the_layers_are_int8(program: Any) -> None:
    kernels = " ".join(program.kernels())
    assert all(word in kernels for word in KERNELS)


def test_facts_tell_how_it_was_quantised(program: Any) -> None:
    facts = program.facts()
    assert (facts["calibration_samples"], facts["quantised_nodes"] > 0) == (12, True)
    assert facts["preparation_seconds"] > 0 and "per channel" in facts["quantisation"]


def test_a_batch_of_another_size_goes_through_the_same_program(work: Work, program: Any) -> None:
    batch = {name: np.concatenate([values, values[:2]]) for name, values in work.batch.items()}
    whole, part = program.predict(batch), program.predict(work.batch)
    np.testing.assert_array_equal(whole[:4], part)
    np.testing.assert_array_equal(whole[4:], part[:2])


def test_the_step_computes_what_predict_tells(work: Work, program: Any) -> None:
    output = program.step()
    found = output.numpy() if hasattr(output, "numpy") else output
    np.testing.assert_array_equal(found, program.predict(work.batch))


def test_other_weights_are_quantised_anew(work: Work, program: Any) -> None:
    before = program.predict(work.batch)
    program.load({name: 2 * array for name, array in work.weights.items()})
    assert not np.allclose(program.predict(work.batch), before, rtol=0.1)


def test_recurrent_networks_are_refused_with_a_reason(work_of: Callable[[str], Work]) -> None:
    with pytest.raises(Unsupported, match="ONNX Runtime can not quantise its lstm"):
        folder.lower(work_of("words"), replace(CASE, workload="words"))


def test_without_calibration_there_is_no_int8(work: Work) -> None:
    with pytest.raises(Unsupported, match="range of values"):
        folder.lower(replace(work, calibration=()), CASE)
