"""What holds for every program that runs the ONNX model of the graph."""

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
def test_steps_from_device_and_host_equal_predict(lower: Any, work_of: Any, name: str) -> None:
    near, far = lower(name), lower(name, data="host")
    np.testing.assert_array_equal(values(near.step()), values(far.step()))
    np.testing.assert_array_equal(values(far.step()), near.predict(work_of(name).batch))


def test_feed_sets_the_next_batch_without_compiling(lower: Any, work_of: Any, data: str) -> None:
    program, batch = lower("images", data=data), {"input": 2 * work_of("images").batch["input"]}
    before, compilations = values(program.step()), program.compilations()
    program.feed(batch)
    after = values(program.step())
    assert not np.array_equal(after, before)
    np.testing.assert_array_equal(after, program.predict(batch))
    assert program.compilations() == compilations


def test_feed_copies_its_batch(lower: Any, work_of: Any, data: str) -> None:
    program, batch = lower("images", data=data), work_of("images").batch
    program.feed(batch)
    before = values(program.step())
    batch["input"] *= 2
    np.testing.assert_array_equal(values(program.step()), before)


def test_predict_does_not_change_the_input_of_the_step(lower: Any, work_of: Any, data: str) -> None:
    program = lower("images", data=data)
    before = values(program.step())
    program.predict({"input": 2 * work_of("images").batch["input"]})
    np.testing.assert_array_equal(values(program.step()), before)


def test_step_uses_the_weights_last_loaded(lower: Any, data: str) -> None:
    program = lower("images", data=data)
    program.load({name: 0 * array for name, array in program.weights().items()})
    assert not values(program.step()).any()


def test_weights_equal_those_that_were_loaded(lower: Any, work_of: Any) -> None:
    for name, array in lower("sequence").weights().items():
        np.testing.assert_array_equal(array, work_of("sequence").weights[name], err_msg=name)


def test_weights_are_a_copy(lower: Any) -> None:
    program = lower("images")
    program.weights()["dense1.bias"][:] = 7
    assert not (program.weights()["dense1.bias"] == 7).any()


def test_facts_and_kernels_are_json(lower: Any) -> None:
    program = lower("images", threads=1)
    report = {"facts": program.facts(), "kernels": program.kernels()}
    assert report["facts"]["threads"] == 1
    assert json.loads(json.dumps(report)) == report


def test_kernels_contain_operators_but_no_constants(lower: Any) -> None:
    kernels = lower("sequence").kernels()
    assert {name.split()[0].lower() for name in kernels} >= {"gather"}
    assert any("lstm" in name.lower() or "rnnseq" in name.lower() for name in kernels)
    assert not any(name.startswith(("Const", "Input", "Parameter", "Identity")) for name in kernels)


def test_gradients_are_refused(lower: Any, work_of: Any) -> None:
    with pytest.raises(Unsupported, match="gradients"):
        lower("images").gradients(work_of("images").batch)


def test_program_is_synchronous_and_compiles_nothing_later(lower: Any) -> None:
    program = lower("images")
    program.wait()
    assert program.timer is None and program.memory() == {} and program.compilations() == 0
