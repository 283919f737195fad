"""What only a GPU can show: the timer, CUDA graphs, formats, memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from steptime.graph import Optimizer, adam, momentum, sgd

pytestmark = [
    pytest.mark.gpu,
    # PyTorch 2.11's compiler uses what PyTorch deprecates, advises tf32 and looks at gradients.
    pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:TensorFloat32 tensor cores:UserWarning"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf"),
]
NAMES = ["residual", "sequence", "branches", "transformer", "cells"]
CAPTURED = ["cudagraph", "compiled-cudagraph", "max-autotune"]


@pytest.fixture(autouse=True)
def gpu(torch: Any) -> None:
    if not torch.cuda.is_available():
        pytest.skip(f"torch {torch.__version__} sees no CUDA device")


def train(lower: Any, name: str, optimizer: Optimizer, **settings: Any) -> dict[str, Any]:
    program = lower(name, optimizer, device="cuda:0", **settings)
    for _ in range(3):
        program.step()
    program.wait()
    return dict(program.weights())


@pytest.mark.parametrize(
    "optimizer", [sgd(0.1), momentum(0.1), adam(0.01)], ids=lambda optimizer: optimizer.algorithm
)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mode", CAPTURED)
def test_cuda_graph_trains_like_eager(
    lower: Any, mode: str, name: str, optimizer: Optimizer
) -> None:
    eager = train(lower, name, optimizer)
    replayed = train(lower, name, optimizer, mode=mode)
    for key, array in eager.items():
        np.testing.assert_allclose(replayed[key], array, rtol=1e-3, atol=1e-4, err_msg=key)


@pytest.mark.parametrize("phase", ["inference", "forward"])
@pytest.mark.parametrize("captured", CAPTURED)
def test_cuda_graph_step_returns_the_same_as_eager(lower: Any, captured: str, phase: str) -> None:
    eager, replayed = (
        lower("residual", device="cuda:0", phase=phase, mode=mode) for mode in ("eager", captured)
    )
    np.testing.assert_allclose(replayed.step().cpu(), eager.step().cpu(), rtol=1e-3, atol=1e-5)


def test_cuda_graph_step_copies_the_host_batch(lower: Any) -> None:
    program = lower("residual", device="cuda:0", phase="inference", mode="cudagraph", data="host")
    before = program.step().clone()
    program.wait()
    program.host[0].mul_(2)
    assert not program.step().equal(before)


@pytest.mark.parametrize("mode", CAPTURED)
def test_cuda_graph_drops_other_values_at_every_step(lower: Any, mode: str) -> None:
    """A replay that repeated its random numbers would give one loss for ever."""
    program = lower("perceptron", sgd(0.0), device="cuda:0", mode=mode)
    losses = {program.step().item() for _ in range(8)}
    assert len(losses) > 1


@pytest.mark.parametrize("precision", ["tf32", "bf16", "fp16"])
@pytest.mark.parametrize("name", NAMES)
def test_training_on_cuda_lowers_the_loss_in_every_precision(
    lower: Any, name: str, precision: str
) -> None:
    program = lower(name, adam(0.01), device="cuda:0", precision=precision)
    losses = [program.step().item() for _ in range(20)]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("name", NAMES)
def test_gradients_on_cuda_are_near_those_of_the_cpu(lower: Any, work_of: Any, name: str) -> None:
    batch = work_of(name).batch
    _, exact = lower(name, precision="fp64").gradients(batch)
    _, gradients = lower(name, device="cuda:0").gradients(batch)
    for key, array in exact.items():
        np.testing.assert_allclose(gradients[key], array, rtol=1e-2, atol=1e-4, err_msg=key)


@pytest.mark.parametrize("data", ["device", "host"])
@pytest.mark.parametrize("mode", CAPTURED)
def test_cuda_graph_step_uses_the_fed_batch(lower: Any, work_of: Any, mode: str, data: str) -> None:
    program = lower("residual", device="cuda:0", phase="inference", mode=mode, data=data)
    batch = {**work_of("residual").batch}
    program.step()
    batch["input"] = 2 * batch["input"]
    program.feed(batch)
    np.testing.assert_allclose(program.step().cpu(), program.predict(batch), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("mode", ["eager", *CAPTURED])
def test_kernels_on_cuda_are_not_operators(lower: Any, mode: str) -> None:
    program = lower("residual", device="cuda:0", phase="inference", mode=mode)
    program.step()
    kernels = program.kernels()
    assert kernels and not any(name.startswith("aten::") for name in kernels)


def test_recurrent_weights_are_contiguous_on_cuda(
    lower: Any, recwarn: pytest.WarningsRecorder
) -> None:
    program = lower("sequence", device="cuda:0")
    program.step()
    assert not [warning for warning in recwarn if "contiguous chunk" in str(warning.message)]


def test_cuda_timer_measures_and_recycles_its_events(lower: Any) -> None:
    program = lower("residual", device="cuda:0")
    size = len(program.timer.pool)
    first, _, last = program.timer.record(), program.step(), program.timer.record()
    program.wait()
    assert program.timer.elapsed_ns(first, last) > 0
    del first, last
    assert len(program.timer.pool) == size


def test_memory_on_cuda_reports_peaks(lower: Any) -> None:
    program = lower("residual", device="cuda:0")
    program.step()
    memory = program.memory()
    assert 0 < memory["peak_allocated_bytes"] <= memory["peak_reserved_bytes"]


def test_measure_peaks_on_cuda_orders_formats() -> None:
    from steptime.frameworks.pytorch.peaks import measure_peaks

    peaks = measure_peaks("cuda:0", 14)
    assert peaks["bf16"]["flops_per_second"] > peaks["fp32"]["flops_per_second"]
    assert peaks["copy"]["bytes_per_second"] > 1e11
