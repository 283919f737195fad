"""Which routines a step really runs, by PyTorch's own profiler: what oneDNN or cuDNN chose is seen here only."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

MOST = 40
MOVES = frozenset(f"aten::{name}" for name in (
    "_local_scalar_dense", "_reshape_alias", "_to_copy", "_unsafe_view", "alias", "as_strided", "as_strided_",
    "clone", "contiguous", "copy_", "cudnn_is_acceptable", "detach", "empty", "empty_like", "empty_strided",
    "expand", "expand_as", "fill_", "flatten", "is_nonzero", "item", "lift_fresh", "narrow", "new_empty",
    "new_zeros", "ones_like", "permute", "reshape", "resize_", "resolve_conj", "resolve_neg", "result_type",
    "select", "set_", "slice", "split", "split_with_sizes", "squeeze", "t", "to", "transpose", "unbind",
    "unsqueeze", "view", "zero_", "zeros", "zeros_like",
))  # fmt: skip
"""Memory asked for, looked at in another way, filled or copied: no arithmetic."""


LIBRARIES = ("mkldnn", "onednn", "_fused_", "flash_attention")


def kernels_of(step: Callable[[], Any], wait: Callable[[], None], *, cuda: bool) -> dict[str, int]:
    """Name -> how often in one step, the costliest first. Empty where the profiler cannot work."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Not torch.profiler, which imports the compiler first: two seconds of a process without an optimiser.
            with torch.autograd.profiler.profile(
                use_device="cuda" if cuda else None, use_kineto=True
            ) as profiler:
                step()
                wait()
            found = list(profiler.function_events)
    except (
        Exception
    ):  # a driver may forbid it, a build may lack it: the measurement is done and stands without
        return {}
    return _costliest(_on_device(found) if cuda else _on_host(found))


def _costliest(events: list[tuple[str, float]]) -> dict[str, int]:
    counts, times = Counter(name for name, _ in events), Counter[str]()
    for name, microseconds in events:
        times[name] += microseconds  # type: ignore[assignment]
    return {name: counts[name] for name, _ in times.most_common(MOST)}


def _on_device(events: list[Any]) -> list[tuple[str, float]]:
    mine = [event for event in events if event.device_type != torch.autograd.DeviceType.CPU]
    return [(event.name, event.device_time_total) for event in mine]


def _on_host(events: list[Any]) -> list[tuple[str, float]]:
    roots = [event for event in events if event.cpu_parent is None]
    return [(event.name, event.cpu_time_total) for root in roots for event in _routines(root)]


def _routines(event: Any) -> list[Any]:
    """The innermost operators that do arithmetic (`aten::mm`, not the `aten::linear` that leads to it), but a library's
    own routine as a whole, whatever it calls."""
    space = event.name.partition("::")[0]
    routine = "::" in event.name and space not in ("autograd", "torch") and event.name not in MOVES
    if routine and any(word in event.name for word in LIBRARIES):
        return [event]
    inside = [found for child in event.cpu_children for found in _routines(child)]
    return inside or ([event] if routine or "fused" in event.name else [])
