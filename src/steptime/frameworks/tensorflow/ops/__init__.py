"""One function per op: what it computes, in TensorFlow. A new op is one entry in the `OPS` of a
module."""

from __future__ import annotations

from collections.abc import Callable

from steptime.frameworks.tensorflow.context import Array
from steptime.frameworks.tensorflow.ops import images, sequences, simple

OPS: dict[str, Callable[..., Array]] = simple.OPS | images.OPS | sequences.OPS
# These ops get their weights in the stored precision and cast what they need.
STORED_PRECISION = frozenset({"batch_norm", "embedding", "layer_norm", "tied_embedding"})
