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
    decay = spec.weight_decay
    if spec.algorithm in ("sgd", "momentum") and not spec.decoupled:
        inertia = spec.momentum if spec.algorithm == "momentum" else 0.0
        return _at_rest(
            torch.optim.SGD(weights, lr=spec.rate, momentum=inertia, weight_decay=decay, fused=True)
        )
    if spec.algorithm != "adam":
        how = "decoupled " if spec.decoupled else ""
        raise Unsupported(
            f"PyTorch's folder has no optimiser {how + spec.algorithm!r}; it has sgd, momentum and adam."
        )
    make = torch.optim.AdamW if spec.decoupled else torch.optim.Adam
    found = make(
        weights,
        lr=spec.rate,
        betas=spec.betas,
        eps=spec.epsilon,
        weight_decay=decay,
        fused=True,
        capturable=capturable,
    )
    # Steps before the capture are meant: PyTorch would warn of them.
    found._warned_capturable_if_run_uncaptured = True
    return found


def _at_rest(optimizer: torch.optim.SGD) -> torch.optim.SGD:
    """Momentum starts as zeros. Left alone, the fused step takes memory as it finds it and fills it in its first step,
    which loss scaling may skip: the second one would then go on with whatever lay there."""
    for group in optimizer.param_groups:
        for weight in group["params"] if group["momentum"] else ():
            optimizer.state[weight]["momentum_buffer"] = torch.zeros_like(weight)
    return optimizer
