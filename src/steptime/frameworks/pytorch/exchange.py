"""Gradients averaged over ranks, by one of two libraries.

The module of each library says which backend moves the bytes, what it does not support, and how
to wrap a module and an optimiser and reduce pieces of memory."""

from __future__ import annotations

import os
from itertools import pairwise
from types import ModuleType
from typing import Any

import torch

from steptime.core.case import Case
from steptime.core.errors import SteptimeError, Unsupported
from steptime.core.ranks import read_ranks
from steptime.frameworks.pytorch import ddp, horovod
from steptime.frameworks.pytorch.lowering import Lowered
from steptime.frameworks.pytorch.modes import is_captured

LIBRARIES = {"allreduce": ddp, "horovod": horovod}
# Bytes, as in DistributedDataParallel.
FIRST_BUCKET = 1 << 20
BUCKET = 25 << 20


def facts(case: Case) -> dict[str, Any]:
    if not case.shares_gradients:
        return {}
    return {"exchange_backend": _library(case).backend(case)}


def unsupported(case: Case) -> str | None:
    if case.exchange == "parameter_server":
        return "PyTorch has no parameter server of its own; use exchange=allreduce."
    if not case.shares_gradients:
        return None
    if is_captured(case):
        return (
            "A CUDA graph of a step that exchanges gradients is not supported; "
            "use mode=eager or compiled."
        )
    reason: str | None = _library(case).unsupported(case)
    return reason


def wrap_module(module: Lowered, case: Case) -> Any:
    """What to call instead of the module, so that its gradients are the mean over all ranks."""
    if case.ranks == 1:
        return module
    ranks = read_ranks(os.environ)
    # Each rank has its own dropout.
    torch.manual_seed(case.seed + ranks.rank)
    if not case.shares_gradients:
        return module
    if ranks.size != case.ranks:
        raise SteptimeError(
            f"{case.ranks} ranks exchange gradients, and {ranks.size} were started."
        )
    return _library(case).wrap_module(module, case, ranks)


def wrap_optimizer(
    optimizer: torch.optim.Optimizer, module: Lowered, case: Case
) -> torch.optim.Optimizer:
    """What to step instead of the optimiser."""
    if not case.shares_gradients:
        return optimizer
    wrapped: torch.optim.Optimizer = _library(case).wrap_optimizer(optimizer, module)
    return wrapped


def exchange(module: Lowered, case: Case, *, tiny: bool) -> int:
    """Exchanges what a step does, or a single number if `tiny`; returns the bytes.

    In pieces of the size of DistributedDataParallel's buckets, all of them at once."""
    if not case.shares_gradients:
        raise Unsupported("These ranks exchange nothing.")
    buffer = _exchange_buffer(module)
    count = 1 if tiny else buffer.numel()
    item = buffer.element_size()
    edges = [0, *range(FIRST_BUCKET // item, count, BUCKET // item), count]
    pieces = [buffer[start:stop] for start, stop in pairwise(edges) if stop > start]
    _library(case).all_reduce(pieces)
    if buffer.is_cuda:
        torch.cuda.synchronize(buffer.device)
    return count * item


def _library(case: Case) -> ModuleType:
    return LIBRARIES[case.exchange]


def _exchange_buffer(module: Lowered) -> torch.Tensor:
    """As large as all gradients. Allocated once, because new memory would cost time."""
    if not hasattr(module, "exchange_buffer"):
        weights = [weight for weight in module.parameters() if weight.requires_grad]
        count = sum(weight.numel() for weight in weights)
        zeros = torch.zeros(count, dtype=weights[0].dtype, device=weights[0].device)
        # Past nn.Module's own __setattr__.
        object.__setattr__(module, "exchange_buffer", zeros)
    buffer: torch.Tensor = module.exchange_buffer
    return buffer
