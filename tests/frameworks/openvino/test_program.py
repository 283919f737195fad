from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from steptime.core.errors import Unsupported


@pytest.mark.parametrize("name", ["images", "words"])
def test_preset_and_fetched_steps_give_the_same(lower: Any, name: str, work_of: Any) -> None:
    preset, fetched = lower(name), lower(name, data="host")
    np.testing.assert_array_equal(preset.step(), fetched.step())
    np.testing.assert_array_equal(fetched.step(), preset.predict(work_of(name).batch))


def test_a_preset_step_computes_anew(lower: Any) -> None:
    program = lower("images")
    before = program.step().copy()
    program.request.get_input_tensor().data[:] *= 2
    assert not np.array_equal(program.step(), before)


def test_a_preset_input_is_the_programs_own(lower: Any, work_of: Any) -> None:
    program = lower("images")
    before = program.step().copy()
    program.input *= 2
    np.testing.assert_array_equal(program.step(), before)


def test_a_step_is_of_the_weights_last_loaded(lower: Any) -> None:
    program = lower("images")
    program.load({name: 0 * array for name, array in program.weights().items()})
    assert not program.step().any()


def test_predicting_leaves_the_steps_input_alone(lower: Any, work_of: Any) -> None:
    program = lower("images")
    before = program.step().copy()
    program.predict({"input": 2 * work_of("images").batch["input"]})
    np.testing.assert_array_equal(program.step(), before)


def test_what_comes_out_is_no_view_of_the_program(lower: Any) -> None:
    program = lower("images")
    program.weights()["dense1.bias"][:] = 7
    assert not (program.weights()["dense1.bias"] == 7).any()


def test_facts_say_what_was_used_and_fit_into_a_journal(lower: Any) -> None:
    facts = lower("images", threads=1).facts()
    assert (facts["threads"], facts["streams"], facts["inference_precision"]) == (1, 1, "f32")
    assert facts["telemetry"] is False
    assert json.loads(json.dumps(facts)) == facts


def test_fp32_is_computed_by_kernels_of_fp32(lower: Any) -> None:
    """Left to itself OpenVINO computes in bf16 where the CPU has it."""
    kernels = lower("images").facts()["kernels"]
    assert any(name.startswith("Convolution ") and name.endswith("f32") for name in kernels)
    assert not any(name.endswith("f16") for name in kernels)  # bf16 too


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_a_lower_precision_is_computed_by_its_own_kernels(lower: Any, precision: str) -> None:
    try:
        kernels = lower("images", precision=precision).facts()["kernels"]
    except Unsupported as problem:
        pytest.skip(str(problem))
    kind = {"bf16": "bf16", "fp16": "f16"}[precision]
    assert any(name.startswith("Convolution ") and name.endswith(kind) for name in kernels)


def test_counting_kernels_leaves_the_timed_model_alone(lower: Any) -> None:
    program = lower("images")
    program.facts()
    assert program.compiled.get_property("PERF_COUNT") in (False, "NO")  # by version


def test_there_are_no_gradients(lower: Any, work_of: Any) -> None:
    with pytest.raises(Unsupported, match="gradients"):
        lower("images").gradients(work_of("images").batch)


def test_nothing_is_asynchronous_or_compiled_later(lower: Any) -> None:
    program = lower("images")
    program.wait()
    assert program.timer is None and program.memory() == {} and program.compilations() == 0
