"""Gradients shared by ranks, by one of two libraries. Each one's module says which backend moves the bytes, what it can
not do, and how a module, an optimiser and pieces of memory are shared."""

from __future__ import annotations

import os
from itertools import pairwise
from types import ModuleType
from typing import Any

import torch

from steptime.core.case import Case
from steptime.core.errors import SteptimeError, Unsupported
from steptime.core.ranks import here
from steptime.frameworks.pytorch import ddp, horovod
from steptime.frameworks.pytorch.lowering import Lowered

LIBRARIES = {"allreduce": ddp, "horovod": horovod}
FIRST_BUCKET, BUCKET = 1 << 20, 25 << 20  # bytes: DistributedDataParallel's own


def facts(case: Case) -> dict[str, Any]:
    return {"exchange_backend": _library(case).backend(case)} if case.shares_gradients else {}


def unsupported(case: Case) -> str | None:
    if case.exchange == "parameter_server":
        return "PyTorch has no parameter server of its own; use exchange=allreduce."
    if not case.shares_gradients:
        return None
    if case.mode == "cudagraph":
        return "A CUDA graph of a step that exchanges gradients is not made here; use mode=eager or compiled."
    found: str | None = _library(case).unsupported(case)
    return found


def shared(module: Lowered, case: Case) -> Any:
    """What to call instead of the module, so that its gradients are the mean over all ranks."""
    if case.ranks == 1:
        return module
    ranks = here(os.environ)
    torch.manual_seed(case.seed + ranks.rank)  # dropout
    if not case.shares_gradients:
        return module
    if ranks.size != case.ranks:
        raise SteptimeError(
            f"{case.ranks} ranks exchange gradients, and {ranks.size} were started."
        )
    return _library(case).shared(module, case, ranks)


def stepped(optimizer: torch.optim.Optimizer, module: Lowered, case: Case) -> torch.optim.Optimizer:
    """What to step instead of the optimiser."""
    if not case.shares_gradients:
        return optimizer
    found: torch.optim.Optimizer = _library(case).stepped(optimizer, module)
    return found


def exchange(module: Lowered, case: Case, *, tiny: bool) -> int:
    """In pieces of the size that DistributedDataParallel makes of them, all on their way at once; or one number."""
    if not case.shares_gradients:
        raise Unsupported("These ranks exchange nothing.")
    weights = [one for one in module.parameters() if one.requires_grad]
    count, item = 1 if tiny else sum(one.numel() for one in weights), weights[0].element_size()
    edges = [0, *range(FIRST_BUCKET // item, count, BUCKET // item), count]
    flat = _flat(module, weights)
    _library(case).reduce([flat[a:b] for a, b in pairwise(edges) if b > a])
    if flat.is_cuda:
        torch.cuda.synchronize(flat.device)
    return count * item


def _library(case: Case) -> ModuleType:
    return LIBRARIES[case.exchange]


def _flat(module: Lowered, weights: list[torch.nn.Parameter]) -> torch.Tensor:
    """Kept from one exchange to the next: new memory would be paid for."""
    if not hasattr(module, "exchanged"):
        count, like = sum(one.numel() for one in weights), weights[0]
        object.__setattr__(
            module, "exchanged", torch.zeros(count, dtype=like.dtype, device=like.device)
        )
    found: torch.Tensor = module.exchanged
    return found
