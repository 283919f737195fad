"""One function per kind of layer: what it computes, in JAX. A new kind is one entry in its family's `KINDS`."""

from __future__ import annotations

from collections.abc import Callable

from steptime.frameworks.jax.context import Array
from steptime.frameworks.jax.ops import images, sequences, simple

KINDS: dict[str, Callable[..., Array]] = {**simple.KINDS, **images.KINDS, **sequences.KINDS}
