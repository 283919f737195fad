"""Optimisers with the exact semantics of `graph.optimizer`, fused: one kernel for all weights."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from steptime.core.errors import Unsupported
from steptime.graph import Optimizer


def optimizer_for(
    spec: Optimizer, weights: Iterable[torch.nn.Parameter], *, capturable: bool = False
) -> torch.optim.Optimizer:
    """`capturable`: Adam counts its steps on the device, so that a CUDA graph can replay them."""
    if spec.algorithm in ("sgd", "momentum") and not spec.decoupled:
        return _sgd(spec, weights)
    if spec.algorithm != "adam":
        name = f"decoupled {spec.algorithm}" if spec.decoupled else spec.algorithm
        raise Unsupported(
            f"PyTorch's folder has no optimiser {name!r}; it has sgd, momentum and adam."
        )
    optimizer_class = torch.optim.AdamW if spec.decoupled else torch.optim.Adam
    optimizer = optimizer_class(
        weights,
        lr=spec.rate,
        betas=spec.betas,
        eps=spec.epsilon,
        weight_decay=spec.weight_decay,
        fused=True,
        capturable=capturable,
    )
    # PyTorch would warn of steps before the capture, which are intended.
    optimizer._warned_capturable_if_run_uncaptured = True
    return optimizer


def _sgd(spec: Optimizer, weights: Iterable[torch.nn.Parameter]) -> torch.optim.SGD:
    momentum = spec.momentum if spec.algorithm == "momentum" else 0.0
    optimizer = torch.optim.SGD(
        weights, lr=spec.rate, momentum=momentum, weight_decay=spec.weight_decay, fused=True
    )
    if momentum:
        _start_momentum_at_zero(optimizer)
    return optimizer


def _start_momentum_at_zero(optimizer: torch.optim.SGD) -> None:
    """Left alone, the fused step allocates uninitialised memory and fills it in its first step.

    Loss scaling may skip that step, and the second one would go on with arbitrary values."""
    for group in optimizer.param_groups:
        for weight in group["params"]:
            optimizer.state[weight]["momentum_buffer"] = torch.zeros_like(weight)
