"""Bytes that a step holds, by purpose."""

from __future__ import annotations

from typing import Any

import jax

from steptime.core.inspection import MemoryAccount
from steptime.frameworks.jax.steps import State


def account_memory(state: State, batch: Any, compiled: Any) -> MemoryAccount:
    """XLA plans one buffer for activations and workspace when it compiles."""
    analysis = compiled.memory_analysis()
    # Outputs that take the memory of donated state are no new memory.
    output_bytes = int(analysis.output_size_in_bytes) - int(analysis.alias_size_in_bytes)
    held = {
        "weights": _bytes(state.weights),
        "buffers": _bytes(state.moving.statistics),
        "optimizer state": _bytes(state.optimizer),
        "inputs": _bytes(batch),
        "activations, temporaries and workspace": int(analysis.temp_size_in_bytes),
        "outputs": max(0, output_bytes),
    }
    return MemoryAccount(held, "XLA plans activations, gradients and workspace as one buffer")


def _bytes(values: Any) -> int:
    return sum(leaf.nbytes for leaf in jax.tree.leaves(values) if hasattr(leaf, "nbytes"))
