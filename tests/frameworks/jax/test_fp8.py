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
    """The first layer fits the tiles, over positions; the second does not."""
    net = Net("tiny")
    graph = net.graph(
        net.dense(net.relu(net.dense(net.embedding(net.tokens(6, 20), 20, 32), 48)), 20)
    )
    return Work(graph, dict(initial_weights(graph, 0)), synthetic_batch(graph, 4, 0), sgd())


@pytest.fixture
def program(work: Work) -> Any:
    """The class itself: on the CPU the folder refuses fp8, though XLA can multiply so there, slowly."""
    from steptime.frameworks.jax.fp8 import Fp8Program

    return Fp8Program(work, CASE)


def exact(work: Work) -> Any:
    from steptime.frameworks import jax as folder

    return folder.lower(work, replace(CASE, precision="fp32")).predict(work.batch)


def test_numbers_fill_the_range_of_the_format() -> None:
    from steptime.frameworks.jax.fp8 import in_fp8

    values, scale = in_fp8(np.array([[0.5, -2.0, 0.25]]))
    assert values.astype(np.float32).tolist() == [[112.0, -448.0, 56.0]] and float(
        scale
    ) == pytest.approx(2 / 448)


def test_fp8_is_near_fp32_and_not_the_same(work: Work, program: Any) -> None:
    right = exact(work)
    error = np.abs(program.predict(work.batch) - right)
    assert 1e-4 < error.max() / np.abs(right).max() < 0.1


def test_the_product_is_asked_for_in_fp8(program: Any) -> None:
    text = program.run.lower(*program._arguments()).as_text()
    assert any("dot_general" in line and "f8E4M3FN" in line for line in text.splitlines())


def test_facts_tell_which_layers_are_fp8(program: Any) -> None:
    facts = program.facts()
    assert facts["fp8_layers"] == ["dense1"] and facts["bf16_dense_layers"].keys() == {"dense2"}
    assert facts["fp8_flops_share"] == pytest.approx(32 / (32 + 20), rel=0.05)


def test_weights_come_out_as_they_went_in(work: Work, program: Any) -> None:
    before = program.predict(work.batch)
    np.testing.assert_array_equal(program.weights()["dense1.weight"], work.weights["dense1.weight"])
    program.load({name: -array for name, array in work.weights.items()})
    program.load(work.weights)
    np.testing.assert_array_equal(program.predict(work.batch), before)


def test_a_network_without_a_layer_that_fits_is_refused(work_of: Any) -> None:
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
def test_low_precisions_are_refused_where_they_are_not(
    setting: dict[str, str], reason: str
) -> None:
    from steptime.frameworks import jax as folder

    assert reason in str(folder.unsupported(replace(CASE, **setting)))  # type: ignore[arg-type]


@pytest.mark.gpu
def test_fp8_runs_on_a_gpu(work: Work) -> None:
    from steptime.frameworks import jax as folder

    case = replace(CASE, device="cuda:0")
    if reason := folder.unsupported(case):
        pytest.skip(reason)
    program, right = folder.lower(work, case), exact(work)
    program.step()
    assert 1e-4 < np.abs(program.predict(work.batch) - right).max() / np.abs(right).max() < 0.1
