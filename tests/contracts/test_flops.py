"""Costs by closed form against what PyTorch counts while it computes, for every network."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from steptime import networks, workloads
from steptime.core.case import Case

torch = pytest.importorskip("torch", reason="PyTorch counts, and it is not installed")


@contextmanager
def plain_kernels() -> Iterator[None]:
    """oneDNN's recurrent layer is one opaque operator, which the counter does not know."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the switch itself warns about Intel's GPUs
        with torch.backends.mkldnn.flags(enabled=False):
            yield


def counted(name: str, phase: str) -> int:
    """By `torch.utils.flop_counter`, on the lowered network, batch 1."""
    from torch.utils.flop_counter import FlopCounterMode

    from steptime.frameworks import pytorch

    case = Case(workload=name, phase=phase, batch_size=1)
    program: Any = pytorch.lower(workloads.load(name).build(case), case)
    counter = FlopCounterMode(display=False)
    with plain_kernels(), counter:
        program.step()
    return int(counter.get_total_flops())


@pytest.mark.parametrize("name", networks.catalogue())
def test_forward_flops_equal_the_counted_ones(name: str) -> None:
    assert networks.load(name).graph.forward_flops == counted(name, "inference")


@pytest.mark.parametrize("name", networks.catalogue())
def test_training_flops_equal_the_counted_ones(name: str) -> None:
    graph = networks.load(name).graph
    assert graph.forward_flops + graph.backward_flops == counted(name, "training")
