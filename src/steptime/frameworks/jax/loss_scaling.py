"""Loss scaling for fp16, inside the compiled step.

It keeps small gradients above zero, and a step that overflows does not move the weights. The
constants are those of PyTorch's `GradScaler`."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

FIRST = 2.0**16
GROWTH = 2.0
BACKOFF = 0.5
PATIENCE = 2000  # finite steps before the scale grows


class LossScaling(NamedTuple):
    scale: Any
    finite_steps: Any  # since the scale last changed

    @classmethod
    def start(cls) -> LossScaling:
        return cls(jnp.float32(FIRST), jnp.int32(0))


def update_scale(scaling: LossScaling, finite: Any) -> LossScaling:
    finite_steps = jnp.where(finite, scaling.finite_steps + 1, 0)
    grows = finite_steps >= PATIENCE
    factor = jnp.where(finite, jnp.where(grows, GROWTH, 1.0), BACKOFF)
    scale = scaling.scale * factor.astype(jnp.float32)
    return LossScaling(scale, jnp.where(grows, 0, finite_steps))


def all_finite(tree: Any) -> Any:
    return jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(tree)]).all()


def select(condition: Any, new: Any, old: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), new, old)
