"""fp8 products of dense layers."""

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

CASE = Case(workload="tiny", phase="inference", precision="fp8", batch_size=4)


@pytest.fixture
def work() -> Work:
    """The first layer fits the tiles, over positions; the second does not."""
    net = Net("tiny")
    graph = net.graph(
        net.dense(net.relu(net.dense(net.embedding(net.tokens(6, 20), 20, 32), 48)), 20)
    )
    return Work(graph, dict(initial_weights(graph, 0)), synthetic_batch(graph, 4, 0), sgd())


def lower_fp8(work: Work, **settings: str) -> Any:
    """The class itself: `lower` rejects fp8 on the CPU, but PyTorch can multiply so, slowly."""
    from steptime.frameworks.pytorch.fp8 import Fp8Program

    return Fp8Program(work, replace(CASE, **settings))  # type: ignore[arg-type]


def exact(work: Work) -> Any:
    from steptime.frameworks import pytorch

    return pytorch.lower(work, replace(CASE, precision="fp32")).predict(work.batch)


def test_to_fp8_fills_the_range_of_the_format(torch: Any) -> None:
    from steptime.frameworks.pytorch.fp8 import to_fp8

    values, scale = to_fp8(torch.tensor([[0.5, -2.0, 0.25]]))
    assert values.float().tolist() == [[112.0, -448.0, 56.0]] and scale.item() == pytest.approx(
        2 / 448
    )


def test_to_fp8_keeps_zeros(torch: Any) -> None:
    from steptime.frameworks.pytorch.fp8 import to_fp8

    values, scale = to_fp8(torch.zeros(2, 2))
    assert values.float().abs().max() == 0 and scale > 0


def test_fp8_predictions_are_near_fp32_but_not_equal(work: Work) -> None:
    right = exact(work)
    error = np.abs(lower_fp8(work).predict(work.batch) - right)
    assert 1e-4 < error.max() / np.abs(right).max() < 0.1


def test_fp8_facts_list_the_layers(work: Work) -> None:
    facts = lower_fp8(work).facts()
    assert facts["fp8_layers"] == ["dense1"] and facts["bf16_dense_layers"].keys() == {"dense2"}
    assert facts["fp8_flops_share"] == pytest.approx(32 / (32 + 20), rel=0.05)


def test_fp8_step_returns_bf16(work: Work, torch: Any) -> None:
    assert lower_fp8(work).step().dtype is torch.bfloat16


def test_fp8_load_scales_weights_again(work: Work) -> None:
    program = lower_fp8(work)
    before = program.predict(work.batch)
    program.load({name: -array for name, array in work.weights.items()})
    program.load(work.weights)
    np.testing.assert_array_equal(program.predict(work.batch), before)


def test_fp8_rejects_a_network_without_fitting_layers(work_of: Any) -> None:
    with pytest.raises(Unsupported, match="multiples of 16"):
        lower_fp8(work_of("perceptron"))


@pytest.mark.parametrize(
    ("setting", "reason"), [({}, "compute capability"), ({"phase": "training"}, "phase=inference")]
)
def test_fp8_is_unsupported_on_the_cpu_and_in_training(
    setting: dict[str, str], reason: str
) -> None:
    from steptime.frameworks import pytorch

    assert reason in str(pytorch.unsupported(replace(CASE, **setting)))  # type: ignore[arg-type]


# To import its compiler, PyTorch 2.11 uses what it deprecates itself.
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")
@pytest.mark.gpu
@pytest.mark.parametrize("mode", ["eager", "compiled", "cudagraph", "compiled-cudagraph"])
def test_fp8_step_runs_on_a_gpu(work: Work, mode: str) -> None:
    from steptime.frameworks import pytorch

    case = replace(CASE, device="cuda:0", mode=mode)
    if reason := pytorch.unsupported(case):
        pytest.skip(reason)
    program, right = pytorch.lower(work, case), exact(work)
    program.step()
    program.wait()
    assert 1e-4 < np.abs(program.predict(work.batch) - right).max() / np.abs(right).max() < 0.1
