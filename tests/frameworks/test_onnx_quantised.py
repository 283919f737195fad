"""What int8 must do in every program that runs the graph's ONNX model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from steptime import plugins
from steptime.core.case import Case
from steptime.core.errors import Unsupported
from steptime.data.synthetic import synthetic_batch
from steptime.graph import Work

QUANTISERS = {"onnxruntime": "ONNX Runtime", "openvino": "NNCF"}
KERNELS = {"onnxruntime": ("QLinearConv", "QGemm"), "openvino": ("Convolution", "I8")}


@dataclass(frozen=True)
class Reader:
    name: str
    work: Work

    def lower(self, precision: str = "int8", **changes: Any) -> Any:
        own: dict[str, Any] = {
            "phase": "inference",
            "mode": "graph",
            "batch_size": 4,
            "precision": precision,
        }
        work = replace(self.work, **changes)
        return plugins.load("frameworks", self.name).lower(
            work, Case(workload="images", framework=self.name, **own)
        )


@pytest.fixture(params=QUANTISERS)
def reader(request: pytest.FixtureRequest, work_of: Callable[[str], Work]) -> Reader:
    for module in {"onnxruntime": ("onnx", "onnxruntime"), "openvino": ("openvino", "nncf")}[
        request.param
    ]:
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    work = work_of("images")
    return Reader(
        request.param,
        replace(work, calibration=tuple(synthetic_batch(work.graph, 4, k) for k in (1, 2, 3))),
    )


@pytest.fixture
def program(reader: Reader) -> Any:
    return reader.lower()


def test_int8_is_near_fp32_and_not_the_same(reader: Reader, program: Any) -> None:
    exact = reader.lower("fp32").predict(reader.work.batch)
    error = np.abs(program.predict(reader.work.batch) - exact)
    assert 1e-6 < error.max() < 0.1 * np.abs(exact).max()


def test_what_calibration_saw_is_not_cut_off(reader: Reader) -> None:
    *small, last = reader.work.calibration
    large = {**last, "input": 8 * last["input"]}
    exact = reader.lower("fp32").predict(large)
    error = np.abs(reader.lower(calibration=(*small, large)).predict(large) - exact)
    assert error.max() < 0.1 * np.abs(exact).max()


def test_outputs_keep_to_no_range(reader: Reader, program: Any) -> None:
    batch = synthetic_batch(reader.work.graph, 400, 4)
    assert len(np.unique(program.predict(batch))) > 256  # all that eight bits can tell apart


def test_the_kernels_of_the_layers_are_int8(reader: Reader, program: Any) -> None:
    kernels = " ".join(program.kernels())
    assert all(word in kernels for word in KERNELS[reader.name])


def test_facts_tell_how_it_was_quantised(program: Any) -> None:
    facts = program.facts()
    assert (facts["calibration_samples"], facts["quantised_nodes"] > 0) == (12, True)
    assert facts["preparation_seconds"] > 0 and "per channel" in facts["quantisation"]


def test_a_batch_of_another_size_goes_through_the_same_program(
    reader: Reader, program: Any
) -> None:
    batch = {
        name: np.concatenate([values, values[:2]]) for name, values in reader.work.batch.items()
    }
    whole, part = program.predict(batch), program.predict(reader.work.batch)
    np.testing.assert_array_equal(whole[:4], part)
    np.testing.assert_array_equal(whole[4:], part[:2])


def test_the_step_computes_what_predict_tells(reader: Reader, program: Any) -> None:
    output = program.step()
    found = output.numpy() if hasattr(output, "numpy") else output
    np.testing.assert_array_equal(found, program.predict(reader.work.batch))


def test_other_weights_are_quantised_anew(reader: Reader, program: Any) -> None:
    before = program.predict(reader.work.batch)
    program.load({name: 2 * array for name, array in reader.work.weights.items()})
    assert not np.allclose(program.predict(reader.work.batch), before, rtol=0.1)


def test_recurrent_networks_are_refused_with_a_reason(
    reader: Reader, work_of: Callable[[str], Work]
) -> None:
    words = work_of("sequence")
    with pytest.raises(Unsupported, match=f"{QUANTISERS[reader.name]} cannot quantise its lstm"):
        reader.lower(graph=words.graph, weights=words.weights, batch=words.batch)


def test_without_calibration_there_is_no_int8(reader: Reader) -> None:
    with pytest.raises(Unsupported, match="range of values"):
        reader.lower(calibration=())
