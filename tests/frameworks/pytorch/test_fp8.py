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


def lowered(work: Work, **settings: str) -> Any:
    """The class itself: on the CPU the folder refuses fp8, though PyTorch can multiply so there, slowly."""
    from steptime.frameworks.pytorch.fp8 import Fp8Program

    return Fp8Program(work, replace(CASE, **settings))  # type: ignore[arg-type]


def exact(work: Work) -> Any:
    from steptime.frameworks import pytorch

    return pytorch.lower(work, replace(CASE, precision="fp32")).predict(work.batch)


def test_numbers_fill_the_range_of_the_format(torch: Any) -> None:
    from steptime.frameworks.pytorch.fp8 import in_fp8

    values, scale = in_fp8(torch.tensor([[0.5, -2.0, 0.25]]))
    assert values.float().tolist() == [[112.0, -448.0, 56.0]] and scale.item() == pytest.approx(
        2 / 448
    )


def test_a_tensor_of_zeros_stays_one(torch: Any) -> None:
    from steptime.frameworks.pytorch.fp8 import in_fp8

    values, scale = in_fp8(torch.zeros(2, 2))
    assert values.float().abs().max() == 0 and scale > 0


def test_fp8_is_near_fp32_and_not_the_same(work: Work) -> None:
    right = exact(work)
    error = np.abs(lowered(work).predict(work.batch) - right)
    assert 1e-4 < error.max() / np.abs(right).max() < 0.1


def test_facts_tell_which_layers_are_fp8(work: Work) -> None:
    facts = lowered(work).facts()
    assert facts["fp8_layers"] == ["dense1"] and facts["bf16_dense_layers"].keys() == {"dense2"}
    assert facts["fp8_flops_share"] == pytest.approx(32 / (32 + 20), rel=0.05)


def test_the_step_gives_bf16(work: Work, torch: Any) -> None:
    assert lowered(work).step().dtype is torch.bfloat16


def test_other_weights_are_scaled_anew(work: Work) -> None:
    program = lowered(work)
    before = program.predict(work.batch)
    program.load({name: -array for name, array in work.weights.items()})
    program.load(work.weights)
    np.testing.assert_array_equal(program.predict(work.batch), before)


def test_a_network_without_a_layer_that_fits_is_refused(work_of: Any) -> None:
    with pytest.raises(Unsupported, match="multiples of 16"):
        lowered(work_of("perceptron"))


@pytest.mark.parametrize(
    ("setting", "reason"), [({}, "compute capability"), ({"phase": "training"}, "phase=inference")]
)
def test_fp8_is_refused_on_the_cpu_and_in_training(setting: dict[str, str], reason: str) -> None:
    from steptime.frameworks import pytorch

    assert reason in str(pytorch.unsupported(replace(CASE, **setting)))  # type: ignore[arg-type]


# To import its compiler, PyTorch 2.11 uses what it deprecates itself.
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")
@pytest.mark.gpu
@pytest.mark.parametrize("mode", ["eager", "compiled", "cudagraph"])
def test_fp8_runs_on_a_gpu(work: Work, mode: str) -> None:
    from steptime.frameworks import pytorch

    case = replace(CASE, device="cuda:0", mode=mode)
    if reason := pytorch.unsupported(case):
        pytest.skip(reason)
    program, right = pytorch.lower(work, case), exact(work)
    program.step()
    program.wait()
    assert 1e-4 < np.abs(program.predict(work.batch) - right).max() / np.abs(right).max() < 0.1
