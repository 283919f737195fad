"""One function per op of layer: what it computes, in JAX. A new op is one entry in its family's `OPS`."""

from __future__ import annotations

from collections.abc import Callable

from steptime.frameworks.jax.context import Array
from steptime.frameworks.jax.ops import images, sequences, simple

OPS: dict[str, Callable[..., Array]] = {**simple.OPS, **images.OPS, **sequences.OPS}
