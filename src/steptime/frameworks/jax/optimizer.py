"""Optimisers with exactly the semantics of `graph.optimizer`, by optax."""

from __future__ import annotations

from typing import Any

from steptime.core.errors import NotInstalled, Unsupported
from steptime.graph import Optimizer


def optimizer_for(spec: Optimizer) -> Any:
    try:
        import optax
    except ImportError as problem:
        raise NotInstalled(f"Training in JAX needs optax ({problem}); install it with: pip install optax") from problem
    if spec.kind == "sgd":
        return optax.sgd(spec.rate)
    if spec.kind == "momentum":
        return optax.sgd(spec.rate, momentum=spec.momentum)
    if spec.kind == "adam":
        return optax.adam(spec.rate, b1=spec.betas[0], b2=spec.betas[1], eps=spec.epsilon)
    raise Unsupported(f"JAX's folder has no optimiser {spec.kind!r}; it has sgd, momentum and adam.")
