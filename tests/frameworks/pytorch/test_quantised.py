"""int8 by PT2E quantisation."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from steptime.core.case import Case
from steptime.core.errors import NotInstalled, Unsupported
from steptime.data.synthetic import synthetic_batch
from steptime.graph import Net, Work, sgd
from steptime.graph.weights import initial_weights

CASE = Case(workload="tiny", phase="inference", mode="compiled", precision="int8", batch_size=4)
needs_quantiser = pytest.mark.skipif(
    find_spec("torchao") is None, reason="torchao is not installed"
)
needs_compiler = pytest.mark.skipif(
    shutil.which("g++") is None, reason="there is no g++ on the path"
)


@pytest.fixture(scope="module")
def work() -> Work:
    net = Net("tiny")
    x = net.relu(net.batch_norm(net.conv(net.input(3, 8, 8), 16, 3, padding=1, bias=False)))
    x = net.relu(net.add(net.batch_norm(net.conv(x, 16, 3, padding=1)), x))
    graph = net.graph(net.dense(net.flatten(net.max_pool(x, 2)), 10))
    calibration = tuple(synthetic_batch(graph, 4, seed) for seed in (1, 2, 3))
    weights = dict(initial_weights(graph, 0))
    return Work(graph, weights, synthetic_batch(graph, 4, 0), sgd(), calibration)


@pytest.fixture(scope="module")
def program(work: Work) -> Any:
    from steptime.frameworks import pytorch

    return pytorch.lower(work, CASE)


pytestmark = pytest.mark.filterwarnings("ignore")  # torchao, torch.export and Inductor have many


@needs_quantiser
@needs_compiler
def test_int8_predictions_are_near_fp32_but_not_equal(work: Work, program: Any) -> None:
    from steptime.frameworks import pytorch

    exact = pytorch.lower(work, replace(CASE, precision="fp32", mode="eager")).predict(work.batch)
    error = np.abs(program.predict(work.batch) - exact)
    assert 1e-6 < error.max() < 0.1 * np.abs(exact).max()


@needs_quantiser
@needs_compiler
def test_int8_kernels_are_used_and_compiled_once(work: Work, program: Any) -> None:
    program.step()
    compiled = program.compilations()
    kernels = " ".join(program.kernels())
    assert "onednn::qconv" in kernels and "onednn::qlinear" in kernels
    program.predict({name: values[:3] for name, values in work.batch.items()})
    assert program.compilations() == compiled


@needs_quantiser
@needs_compiler
def test_int8_facts_describe_the_quantisation(program: Any) -> None:
    facts = program.facts()
    assert (facts["calibration_samples"], facts["freezing"]) == (12, True)
    assert facts["quantised_nodes"] >= 3 and facts["preparation_seconds"] > 0


@needs_quantiser
@needs_compiler
def test_int8_weights_are_the_exact_ones(work: Work, program: Any) -> None:
    np.testing.assert_array_equal(program.weights()["dense1.weight"], work.weights["dense1.weight"])


@needs_quantiser
def test_int8_program_has_no_gradients(work: Work, program: Any) -> None:
    with pytest.raises(Unsupported, match="gradients"):
        program.gradients(work.batch)


@needs_quantiser
@needs_compiler
def test_int8_rejects_recurrent_networks(work_of: Callable[..., Work]) -> None:
    from steptime.frameworks import pytorch

    with pytest.raises(Unsupported, match="PT2E cannot quantise its lstm"):
        pytorch.lower(work_of("sequence"), CASE)


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"phase": "training"}, "phase=inference"),
        ({"mode": "eager"}, "mode=compiled"),
        ({"device": "cuda:0"}, "CPU"),
    ],
)
def test_int8_is_unsupported_in_other_phases_modes_and_devices(
    setting: dict[str, str], reason: str
) -> None:
    from steptime.frameworks import pytorch

    assert reason in str(pytorch.unsupported(replace(CASE, **setting)))  # type: ignore[arg-type]


def test_int8_without_torchao_explains_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from steptime.frameworks import pytorch

    monkeypatch.setattr(pytorch, "find_spec", lambda name: None)
    with pytest.raises(NotInstalled, match=r"pip install 'steptime\[int8\]'"):
        pytorch.unsupported(CASE)
