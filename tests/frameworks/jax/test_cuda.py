"""Precisions, memory and synchronisation on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from steptime.graph import adam

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def gpu(jax: Any) -> None:
    from steptime.core.case import Case
    from steptime.frameworks import jax as folder

    if reason := folder.unsupported(Case(workload="any", mode="compiled", device="cuda:0")):
        pytest.skip(reason)


@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16", "fp16"])
@pytest.mark.parametrize("name", ["residual", "sequence"])
def test_cuda_training_lowers_the_loss_in_every_precision(
    lower: Any, name: str, precision: str
) -> None:
    program = lower(name, adam(0.01), device="cuda:0", precision=precision)
    losses = [program.step().item() for _ in range(20)]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_cuda_gradients_are_near_those_of_the_cpu(lower: Any, work_of: Any, layout: str) -> None:
    batch = work_of("residual").batch
    _, exact = lower("residual", precision="fp64").gradients(batch)
    _, gradients = lower("residual", device="cuda:0", layout=layout).gradients(batch)
    for name, array in exact.items():
        np.testing.assert_allclose(gradients[name], array, rtol=1e-3, atol=1e-5, err_msg=name)


def test_memory_on_cuda_has_a_peak(lower: Any) -> None:
    program = lower("residual", device="cuda:0")
    program.step()
    assert program.memory()["peak_allocated_bytes"] > 0


def test_step_returns_when_everything_is_ready(lower: Any, jax: Any) -> None:
    program = lower("residual", adam(), device="cuda:0")
    assert program.step().is_ready()
    assert all(leaf.is_ready() for leaf in jax.tree.leaves(program.state))
