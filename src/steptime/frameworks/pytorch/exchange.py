"""Gradients shared by ranks: DistributedDataParallel over gloo on the CPU and NCCL on CUDA. The process group ends with
the process."""

from __future__ import annotations

import atexit
import gc
import os
import warnings
from itertools import pairwise
from typing import Any

import torch
import torch.distributed as group
from torch.nn.parallel import DistributedDataParallel

from steptime.core.case import Case
from steptime.core.errors import SteptimeError, Unsupported
from steptime.core.ranks import Ranks, here
from steptime.frameworks.pytorch.lowering import Lowered

FIRST_BUCKET, BUCKET = 1 << 20, 25 << 20  # bytes: DistributedDataParallel's own


def backend(case: Case) -> str:
    return "gloo" if case.device == "cpu" else "nccl"


def facts(case: Case) -> dict[str, Any]:
    return {"exchange_backend": backend(case)} if case.shares_gradients else {}


def unsupported(case: Case) -> str | None:
    if case.exchange == "parameter_server":
        return "PyTorch has no parameter server of its own; use exchange=allreduce."
    if not case.shares_gradients:
        return None
    if case.mode == "cudagraph":
        return "A CUDA graph of a step with DistributedDataParallel is not made here; use mode=eager or compiled."
    if not group.is_available() or not group.is_backend_available(backend(case)):
        return f"torch {torch.__version__} is built without {backend(case)}, by which {case.device} exchanges."
    return None


def shared(module: Lowered, case: Case) -> Any:
    """What to call instead of the module, so that its gradients are the mean over all ranks."""
    if case.ranks == 1:
        return module
    ranks = here(os.environ)
    torch.manual_seed(case.seed + ranks.rank)  # dropout
    if not case.shares_gradients:
        return module
    _join(ranks, case)
    # The moving statistics of batch norm follow rank 0's, as is usual. Constants are equal everywhere.
    constants = set(dict(module.named_buffers())) - set(module.state_dict())
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(module, constants)
    statistics = len(list(module.buffers())) > len(constants)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch 2.13 has another name for it, which 2.11 does not know
        return DistributedDataParallel(module, broadcast_buffers=statistics)


def exchange(module: Lowered, case: Case, *, tiny: bool) -> int:
    """In pieces of the size that DistributedDataParallel makes of them, all on their way at once; or one number."""
    if not case.shares_gradients:
        raise Unsupported("These ranks exchange nothing.")
    weights = [one for one in module.parameters() if one.requires_grad]
    count, item = 1 if tiny else sum(one.numel() for one in weights), weights[0].element_size()
    edges = [0, *range(FIRST_BUCKET // item, count, BUCKET // item), count]
    flat = _flat(module, weights)
    works = [group.all_reduce(flat[a:b], async_op=True) for a, b in pairwise(edges) if b > a]
    for work in works:
        work.wait()
    if flat.is_cuda:
        torch.cuda.synchronize(flat.device)
    return count * item


def _flat(module: Lowered, weights: list[torch.nn.Parameter]) -> torch.Tensor:
    """Kept from one exchange to the next: new memory would be paid for."""
    if not hasattr(module, "exchanged"):
        count, like = sum(one.numel() for one in weights), weights[0]
        object.__setattr__(module, "exchanged", torch.zeros(count, dtype=like.dtype, device=like.device))
    found: torch.Tensor = module.exchanged
    return found


def _join(ranks: Ranks, case: Case) -> None:
    if group.is_initialized():
        return
    if ranks.size != case.ranks:
        raise SteptimeError(f"{case.ranks} ranks exchange gradients, and {ranks.size} were started.")
    launched = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"  # torchrun holds the port itself
    method = "env://" if launched else f"tcp://{ranks.address}:{ranks.port}"
    device = None if case.device == "cpu" else torch.device(case.device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        group.init_process_group(
            backend(case), init_method=method, rank=ranks.rank, world_size=ranks.size, device_id=device
        )
    atexit.register(_part)


def _part() -> None:
    """A module that outlives the group ends the interpreter with an abort (torch 2.13 with gloo)."""
    gc.unfreeze()
    gc.collect()
    group.destroy_process_group()
