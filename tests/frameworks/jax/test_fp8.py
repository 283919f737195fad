from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from steptime.core.case import Case
from steptime.core.errors import Unsupported
from steptime.data.synthetic import synthetic_batch
from steptime.graph import Net, Work, sgd
from steptime.graph.weights import initial_weights

CASE = Case(
    workload="tiny",
    framework="jax",
    phase="inference",
    mode="compiled",
    precision="fp8",
    batch_size=4,
)


@pytest.fixture
def work() -> Work:
    """The first dense layer fits the tiles; the second does not."""
    net = Net("tiny")
    graph = net.graph(
        net.dense(net.relu(net.dense(net.embedding(net.tokens(6, 20), 20, 32), 48)), 20)
    )
    return Work(graph, dict(initial_weights(graph, 0)), synthetic_batch(graph, 4, 0), sgd())


@pytest.fixture
def program(work: Work) -> Any:
    """`lower` refuses fp8 on the CPU, although XLA can multiply in fp8 there, slowly."""
    from steptime.frameworks.jax.fp8 import Fp8Program

    return Fp8Program(work, CASE)


def exact(work: Work) -> Any:
    from steptime.frameworks import jax as folder

    return folder.lower(work, replace(CASE, precision="fp32")).predict(work.batch)


def test_to_fp8_fills_the_range_of_the_format() -> None:
    from steptime.frameworks.jax.fp8 import to_fp8

    values, scale = to_fp8(np.array([[0.5, -2.0, 0.25]]))
    assert values.astype(np.float32).tolist() == [[112.0, -448.0, 56.0]]
    assert float(scale) == pytest.approx(2 / 448)


def test_fp8_predictions_are_near_fp32_but_not_equal(work: Work, program: Any) -> None:
    right = exact(work)
    error = np.abs(program.predict(work.batch) - right)
    assert 1e-4 < error.max() / np.abs(right).max() < 0.1


def test_fp8_program_multiplies_in_fp8(program: Any) -> None:
    text = program.run.lower(*program._arguments()).as_text()
    assert any("dot_general" in line and "f8E4M3FN" in line for line in text.splitlines())


def test_fp8_facts_list_the_layers(program: Any) -> None:
    facts = program.facts()
    assert facts["fp8_layers"] == ["dense1"] and facts["bf16_dense_layers"].keys() == {"dense2"}
    assert facts["fp8_flops_share"] == pytest.approx(32 / (32 + 20), rel=0.05)


def test_weights_equal_those_that_were_loaded(work: Work, program: Any) -> None:
    before = program.predict(work.batch)
    np.testing.assert_array_equal(program.weights()["dense1.weight"], work.weights["dense1.weight"])
    program.load({name: -array for name, array in work.weights.items()})
    program.load(work.weights)
    np.testing.assert_array_equal(program.predict(work.batch), before)


def test_fp8_refuses_a_network_without_a_fitting_layer(work_of: Any) -> None:
    from steptime.frameworks.jax.fp8 import Fp8Program

    with pytest.raises(Unsupported, match="multiples of 16"):
        Fp8Program(work_of("perceptron"), CASE)


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({}, "compute capability"),
        ({"phase": "training"}, "phase=inference"),
        ({"precision": "int8"}, "quantisation"),
    ],
)
def test_unsupported_refuses_low_precisions_with_a_reason(
    setting: dict[str, str], reason: str
) -> None:
    from steptime.frameworks import jax as folder

    assert reason in str(folder.unsupported(replace(CASE, **setting)))  # type: ignore[arg-type]


@pytest.mark.gpu
def test_fp8_predictions_on_a_gpu_are_near_fp32(work: Work) -> None:
    from steptime.frameworks import jax as folder

    case = replace(CASE, device="cuda:0")
    if reason := folder.unsupported(case):
        pytest.skip(reason)
    program = folder.lower(work, case)
    right = exact(work)
    program.step()
    error = np.abs(program.predict(work.batch) - right)
    assert 1e-4 < error.max() / np.abs(right).max() < 0.1
