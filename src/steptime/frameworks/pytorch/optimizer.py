"""Optimisers with exactly the semantics of `graph.optimizer`, in PyTorch's fused form: one kernel for all weights."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from steptime.core.errors import Unsupported
from steptime.graph import Optimizer


def optimizer_for(
    spec: Optimizer, weights: Iterable[torch.nn.Parameter], *, capturable: bool = False
) -> torch.optim.Optimizer:
    """`capturable`: Adam counts its steps on the device, so that a CUDA graph can replay them."""
    if spec.kind == "sgd":
        return torch.optim.SGD(weights, lr=spec.rate, fused=True)
    if spec.kind == "momentum":
        return torch.optim.SGD(weights, lr=spec.rate, momentum=spec.momentum, fused=True)
    if spec.kind != "adam":
        raise Unsupported(f"PyTorch's folder has no optimiser {spec.kind!r}; it has sgd, momentum and adam.")
    found = torch.optim.Adam(
        weights, lr=spec.rate, betas=spec.betas, eps=spec.epsilon, fused=True, capturable=capturable
    )
    # Steps before the capture are meant: PyTorch would warn of them.
    found._warned_capturable_if_run_uncaptured = True
    return found
