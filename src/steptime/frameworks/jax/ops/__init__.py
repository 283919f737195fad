"""One function per op: what it computes, in JAX. A new op is one entry in the `OPS` of a module."""

from __future__ import annotations

from collections.abc import Callable

from steptime.frameworks.jax.context import Array
from steptime.frameworks.jax.ops import images, sequences, simple

OPS: dict[str, Callable[..., Array]] = simple.OPS | images.OPS | sequences.OPS
