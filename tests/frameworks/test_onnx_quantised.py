"""What holds for int8 in every program that runs the ONNX model of the graph."""

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
class Runtime:
    name: str
    work: Work

    def lower(self, precision: str = "int8", **changes: Any) -> Any:
        settings: dict[str, Any] = {
            "phase": "inference",
            "mode": "graph",
            "batch_size": 4,
            "precision": precision,
        }
        work = replace(self.work, **changes)
        return plugins.load("frameworks", self.name).lower(
            work, Case(workload="images", framework=self.name, **settings)
        )


@pytest.fixture(params=QUANTISERS)
def runtime(request: pytest.FixtureRequest, work_of: Callable[[str], Work]) -> Runtime:
    for module in {"onnxruntime": ("onnx", "onnxruntime"), "openvino": ("openvino", "nncf")}[
        request.param
    ]:
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    work = work_of("images")
    return Runtime(
        request.param,
        replace(work, calibration=tuple(synthetic_batch(work.graph, 4, k) for k in (1, 2, 3))),
    )


@pytest.fixture
def program(runtime: Runtime) -> Any:
    return runtime.lower()


def test_int8_predictions_are_near_fp32_but_not_equal(runtime: Runtime, program: Any) -> None:
    exact = runtime.lower("fp32").predict(runtime.work.batch)
    error = np.abs(program.predict(runtime.work.batch) - exact)
    assert 1e-6 < error.max() < 0.1 * np.abs(exact).max()


def test_int8_keeps_the_full_range_of_calibration(runtime: Runtime) -> None:
    *small, last = runtime.work.calibration
    large = {**last, "input": 8 * last["input"]}
    exact = runtime.lower("fp32").predict(large)
    error = np.abs(runtime.lower(calibration=(*small, large)).predict(large) - exact)
    assert error.max() < 0.1 * np.abs(exact).max()


def test_int8_outputs_are_not_quantised(runtime: Runtime, program: Any) -> None:
    batch = synthetic_batch(runtime.work.graph, 400, 4)
    assert len(np.unique(program.predict(batch))) > 256  # all that eight bits can tell apart


def test_int8_kernels_compute_in_int8(runtime: Runtime, program: Any) -> None:
    kernels = " ".join(program.kernels())
    assert all(kernel in kernels for kernel in KERNELS[runtime.name])


def test_int8_facts_describe_the_quantisation(program: Any) -> None:
    facts = program.facts()
    assert facts["calibration_samples"] == 12
    assert facts["quantised_nodes"] > 0
    assert facts["preparation_seconds"] > 0 and "per channel" in facts["quantisation"]


def test_int8_predicts_batches_of_another_size(runtime: Runtime, program: Any) -> None:
    batch = {
        name: np.concatenate([values, values[:2]]) for name, values in runtime.work.batch.items()
    }
    larger = program.predict(batch)
    outputs = program.predict(runtime.work.batch)
    np.testing.assert_array_equal(larger[:4], outputs)
    np.testing.assert_array_equal(larger[4:], outputs[:2])


def test_int8_step_equals_predict(runtime: Runtime, program: Any) -> None:
    output = program.step()
    array = output.numpy() if hasattr(output, "numpy") else output
    np.testing.assert_array_equal(array, program.predict(runtime.work.batch))


def test_int8_load_quantises_again(runtime: Runtime, program: Any) -> None:
    before = program.predict(runtime.work.batch)
    program.load({name: 2 * array for name, array in runtime.work.weights.items()})
    assert not np.allclose(program.predict(runtime.work.batch), before, rtol=0.1)


def test_int8_refuses_recurrent_networks(runtime: Runtime, work_of: Callable[[str], Work]) -> None:
    recurrent = work_of("sequence")
    with pytest.raises(Unsupported, match=f"{QUANTISERS[runtime.name]} cannot quantise its lstm"):
        runtime.lower(graph=recurrent.graph, weights=recurrent.weights, batch=recurrent.batch)


def test_int8_needs_calibration(runtime: Runtime) -> None:
    with pytest.raises(Unsupported, match="range of values"):
        runtime.lower(calibration=())
