"""Loss scaling for fp16, inside the compiled step: small gradients stay above zero, and a step that overflows does not
move the weights. Same numbers as PyTorch's `GradScaler`."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

FIRST, GROWTH, BACKOFF, PATIENCE = 2.0**16, 2.0, 0.5, 2000


class Scaling(NamedTuple):
    scale: Any
    good: Any  # steps since the scale last changed

    @classmethod
    def start(cls) -> Scaling:
        return cls(jnp.float32(FIRST), jnp.int32(0))


def follow(scaling: Scaling, finite: Any) -> Scaling:
    good = jnp.where(finite, scaling.good + 1, 0)
    grows = good >= PATIENCE
    factor = jnp.where(finite, jnp.where(grows, GROWTH, 1.0), BACKOFF)
    return Scaling(scaling.scale * factor.astype(jnp.float32), jnp.where(grows, 0, good))


def all_finite(tree: Any) -> Any:
    return jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(tree)]).all()


def choose(condition: Any, new: Any, old: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), new, old)
