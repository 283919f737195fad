"""DistributedDataParallel: over gloo on the CPU and NCCL on CUDA.

The process group ends with the process."""

from __future__ import annotations

import atexit
import gc
import os
import warnings
from typing import Any

import torch
import torch.distributed as group
from torch.nn.parallel import DistributedDataParallel

from steptime.core.case import Case
from steptime.core.ranks import Ranks
from steptime.frameworks.pytorch.lowering import Lowered


def backend(case: Case) -> str:
    return "gloo" if case.device == "cpu" else "nccl"


def unsupported(case: Case) -> str | None:
    name = backend(case)
    if group.is_available() and group.is_backend_available(name):
        return None
    return f"torch {torch.__version__} is built without {name}, by which {case.device} exchanges."


def wrap_module(module: Lowered, case: Case, ranks: Ranks) -> Any:
    """All ranks follow the moving statistics of rank 0, as is usual."""
    _join_group(ranks, case)
    # Constants are equal on all ranks, so they need no broadcast.
    constants = set(dict(module.named_buffers())) - set(module.state_dict())
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(module, constants)
    has_statistics = len(list(module.buffers())) > len(constants)
    with warnings.catch_warnings():
        # torch 2.13 has another name for `broadcast_buffers`, which 2.11 does not know.
        warnings.simplefilter("ignore")
        return DistributedDataParallel(module, broadcast_buffers=has_statistics)


def wrap_optimizer(optimizer: torch.optim.Optimizer, module: Lowered) -> torch.optim.Optimizer:
    """The optimiser itself: gradients are averaged at the end of the backward pass."""
    return optimizer


def all_reduce(pieces: list[torch.Tensor]) -> None:
    works = [group.all_reduce(piece, async_op=True) for piece in pieces]
    for work in works:
        work.wait()


def _join_group(ranks: Ranks, case: Case) -> None:
    if group.is_initialized():
        return
    # torchrun holds the port itself.
    by_torchrun = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        group.init_process_group(
            backend(case),
            init_method="env://" if by_torchrun else f"tcp://{ranks.address}:{ranks.port}",
            rank=ranks.rank,
            world_size=ranks.size,
            device_id=None if case.device == "cpu" else torch.device(case.device),
        )
    atexit.register(_leave_group)


def _leave_group() -> None:
    """A module that outlives the group ends the interpreter with an abort (torch 2.13, gloo)."""
    gc.unfreeze()
    gc.collect()
    group.destroy_process_group()
