"""Optimisers with exactly the semantics of `graph.optimizer`, built from optax."""

from __future__ import annotations

from typing import Any

from steptime.core.errors import NotInstalled, Unsupported
from steptime.graph import Optimizer


def optimizer_for(spec: Optimizer) -> Any:
    try:
        import optax
    except ImportError as problem:
        raise NotInstalled(
            f"Training in JAX needs optax ({problem}); install it with: pip install optax"
        ) from problem
    direction = _direction(spec, optax)
    decay = [optax.add_decayed_weights(spec.weight_decay)] if spec.weight_decay else []
    # Decoupled decay is not part of the gradient that the algorithm sees.
    transforms = [direction, *decay] if spec.decoupled else [*decay, direction]
    return optax.chain(*transforms, optax.scale_by_learning_rate(spec.rate))


def _direction(spec: Optimizer, optax: Any) -> Any:
    """From the gradient to what the rate multiplies. Optax's optimisers are chains of these."""
    if spec.algorithm == "sgd":
        return optax.identity()
    if spec.algorithm == "momentum":
        return optax.trace(decay=spec.momentum)
    if spec.algorithm == "adam":
        return optax.scale_by_adam(b1=spec.betas[0], b2=spec.betas[1], eps=spec.epsilon)
    raise Unsupported(
        f"JAX's folder has no optimiser {spec.algorithm!r}; it has sgd, momentum and adam."
    )
