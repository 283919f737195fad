"""What every program that runs the graph's ONNX model must do."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from steptime import plugins
from steptime.core.errors import NotInstalled, Unsupported


@pytest.fixture(params=["onnxruntime", "openvino"])
def defaults(request: pytest.FixtureRequest) -> dict[str, str]:
    try:
        plugins.load("frameworks", request.param).versions()
    except NotInstalled as problem:
        pytest.skip(str(problem))
    return {"framework": request.param, "phase": "inference", "mode": "graph"}


@pytest.fixture(params=["device", "host"])
def data(request: pytest.FixtureRequest) -> str:
    mode: str = request.param
    return mode


def values(output: Any) -> Any:
    """A copy: the next step may write to the same memory."""
    return np.array(output.numpy() if hasattr(output, "numpy") else output)


@pytest.mark.parametrize("name", ["images", "sequence"])
def test_steps_from_device_and_host_give_what_predict_tells(
    lower: Any, work_of: Any, name: str
) -> None:
    near, far = lower(name), lower(name, data="host")
    np.testing.assert_array_equal(values(near.step()), values(far.step()))
    np.testing.assert_array_equal(values(far.step()), near.predict(work_of(name).batch))


def test_steps_after_a_feed_use_its_batch_and_compile_nothing(
    lower: Any, work_of: Any, data: str
) -> None:
    program, batch = lower("images", data=data), {"input": 2 * work_of("images").batch["input"]}
    before, compilations = values(program.step()), program.compilations()
    program.feed(batch)
    after = values(program.step())
    assert not np.array_equal(after, before)
    np.testing.assert_array_equal(after, program.predict(batch))
    assert program.compilations() == compilations


def test_the_steps_input_is_the_programs_own(lower: Any, work_of: Any, data: str) -> None:
    program, batch = lower("images", data=data), work_of("images").batch
    program.feed(batch)
    before = values(program.step())
    batch["input"] *= 2
    np.testing.assert_array_equal(values(program.step()), before)


def test_predicting_leaves_the_steps_input_alone(lower: Any, work_of: Any, data: str) -> None:
    program = lower("images", data=data)
    before = values(program.step())
    program.predict({"input": 2 * work_of("images").batch["input"]})
    np.testing.assert_array_equal(values(program.step()), before)


def test_a_step_is_of_the_weights_last_loaded(lower: Any, data: str) -> None:
    program = lower("images", data=data)
    program.load({name: 0 * array for name, array in program.weights().items()})
    assert not values(program.step()).any()


def test_weights_come_out_as_they_went_in(lower: Any, work_of: Any) -> None:
    for name, array in lower("sequence").weights().items():
        np.testing.assert_array_equal(array, work_of("sequence").weights[name], err_msg=name)


def test_what_comes_out_is_no_view_of_the_program(lower: Any) -> None:
    program = lower("images")
    program.weights()["dense1.bias"][:] = 7
    assert not (program.weights()["dense1.bias"] == 7).any()


def test_facts_and_kernels_fit_into_a_journal(lower: Any) -> None:
    program = lower("images", threads=1)
    told = {"facts": program.facts(), "kernels": program.kernels()}
    assert told["facts"]["threads"] == 1
    assert json.loads(json.dumps(told)) == told


def test_kernels_name_operators_and_leave_constants_out(lower: Any) -> None:
    kernels = lower("sequence").kernels()
    assert {name.split()[0].lower() for name in kernels} >= {"gather"}
    assert any("lstm" in name.lower() or "rnnseq" in name.lower() for name in kernels)
    assert not any(name.startswith(("Const", "Input", "Parameter", "Identity")) for name in kernels)


def test_there_are_no_gradients(lower: Any, work_of: Any) -> None:
    with pytest.raises(Unsupported, match="gradients"):
        lower("images").gradients(work_of("images").batch)


def test_nothing_is_asynchronous_or_compiled_later(lower: Any) -> None:
    program = lower("images")
    program.wait()
    assert program.timer is None and program.memory() == {} and program.compilations() == 0
