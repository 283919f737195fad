"""One function per kind of layer: what it computes, in JAX. A new kind is one entry in its family's `KINDS`."""

from __future__ import annotations

from collections.abc import Callable

from steptime.frameworks.jax.kinds import images, sequences, simple
from steptime.frameworks.jax.walk import Array

KINDS: dict[str, Callable[..., Array]] = {**simple.KINDS, **images.KINDS, **sequences.KINDS}
