"""DistributedDataParallel: over gloo on the CPU and NCCL on CUDA. The process group ends with the process."""

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
    if group.is_available() and group.is_backend_available(backend(case)):
        return None
    return f"torch {torch.__version__} is built without {backend(case)}, by which {case.device} exchanges."


def shared(module: Lowered, case: Case, ranks: Ranks) -> Any:
    """The moving statistics of batch norm follow rank 0's, as is usual. Constants are equal everywhere."""
    _join(ranks, case)
    constants = set(dict(module.named_buffers())) - set(module.state_dict())
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(module, constants)
    statistics = len(list(module.buffers())) > len(constants)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # torch 2.13 has another name for it, which 2.11 does not know
        return DistributedDataParallel(module, broadcast_buffers=statistics)


def stepped(optimizer: torch.optim.Optimizer, module: Lowered) -> torch.optim.Optimizer:
    """Gradients are averaged when the backward pass ends."""
    return optimizer


def reduce(pieces: list[torch.Tensor]) -> None:
    works = [group.all_reduce(piece, async_op=True) for piece in pieces]
    for work in works:
        work.wait()


def _join(ranks: Ranks, case: Case) -> None:
    if group.is_initialized():
        return
    launched = (
        os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    )  # torchrun holds the port itself
    method = "env://" if launched else f"tcp://{ranks.address}:{ranks.port}"
    device = None if case.device == "cpu" else torch.device(case.device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        group.init_process_group(
            backend(case),
            init_method=method,
            rank=ranks.rank,
            world_size=ranks.size,
            device_id=device,
        )
    atexit.register(_part)


def _part() -> None:
    """A module that outlives the group ends the interpreter with an abort (torch 2.13 with gloo)."""
    gc.unfreeze()
    gc.collect()
    group.destroy_process_group()
