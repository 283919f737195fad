from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from steptime.core.errors import Unsupported


@pytest.mark.parametrize("name", ["images", "words"])
def test_bound_and_fetched_steps_give_the_same(lower: Any, name: str, work_of: Any) -> None:
    bound, fetched = lower(name), lower(name, data="host")
    np.testing.assert_array_equal(bound.step().numpy(), fetched.step())
    np.testing.assert_array_equal(fetched.step(), bound.predict(work_of(name).batch))


def test_a_bound_step_computes_anew(lower: Any) -> None:
    program = lower("images")
    before = program.step().numpy().copy()
    program.resident.update_inplace(2 * program.input)
    assert not np.array_equal(program.step().numpy(), before)


def test_a_step_is_of_the_weights_last_loaded(lower: Any) -> None:
    program = lower("images")
    program.load({name: 0 * array for name, array in program.weights().items()})
    assert not program.step().numpy().any()


def test_weights_come_out_as_they_went_in(lower: Any, work_of: Any) -> None:
    for name, array in lower("words").weights().items():
        np.testing.assert_array_equal(array, work_of("words").weights[name], err_msg=name)


def test_what_comes_out_is_no_view_of_the_program(lower: Any) -> None:
    program = lower("images")
    program.weights()["dense1.bias"][:] = 7
    assert not (program.weights()["dense1.bias"] == 7).any()


def test_facts_say_what_was_used_and_fit_into_a_journal(lower: Any) -> None:
    facts = lower("images", threads=1).facts()
    assert (facts["threads"], facts["interop_threads"], facts["spinning"]) == (1, 1, False)
    assert facts["graph_optimization"] == "ORT_ENABLE_ALL"
    assert facts["providers"] == ["CPUExecutionProvider"]
    assert json.loads(json.dumps(facts)) == facts


def test_the_kernels_that_ran_are_told_with_their_provider(lower: Any) -> None:
    kernels = lower("words").facts()["kernels"]
    assert kernels["LSTM CPUExecutionProvider"] == 1
    assert not any(name.startswith("Cast") for name in kernels)


def test_the_layer_of_gates_is_ordered_once_and_not_in_every_step(lower: Any) -> None:
    assert lower("words").facts()["kernels"]["Gather CPUExecutionProvider"] == 1  # the embedding's


def test_there_are_no_gradients(lower: Any, work_of: Any) -> None:
    with pytest.raises(Unsupported, match="gradients"):
        lower("images").gradients(work_of("images").batch)


def test_nothing_is_asynchronous_or_compiled_later(lower: Any) -> None:
    program = lower("images")
    program.wait()
    assert program.timer is None and program.memory() == {} and program.compilations() == 0
