"""Which routines a step really runs, by PyTorch's profiler.

This is the only place to see what oneDNN or cuDNN chose."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

LIMIT = 40
_MOVES = """
_local_scalar_dense _reshape_alias _to_copy _unsafe_view alias as_strided as_strided_ clone
contiguous copy_ cudnn_is_acceptable detach empty empty_like empty_strided expand expand_as fill_
flatten is_nonzero item lift_fresh narrow new_empty new_zeros ones_like permute reshape resize_
resolve_conj resolve_neg result_type select set_ slice split split_with_sizes squeeze t to
transpose unbind unsqueeze view zero_ zeros zeros_like
"""
MOVES = frozenset(f"aten::{name}" for name in _MOVES.split())
"""Operators that allocate, view, fill or copy memory: no arithmetic."""

LIBRARIES = ("mkldnn", "onednn", "_fused_", "flash_attention")


def kernels_of(step: Callable[[], Any], wait: Callable[[], None], *, cuda: bool) -> dict[str, int]:
    """Name -> count in one step, the costliest first. Empty if the profiler cannot work."""
    device = "cuda" if cuda else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Not torch.profiler, which imports the compiler: two seconds of a process that has
            # no optimiser.
            with torch.autograd.profiler.profile(use_device=device, use_kineto=True) as profiler:
                step()
                wait()
            events = list(profiler.function_events)
    # A driver may forbid it, a build may lack it. The measurement is complete without it.
    except Exception:
        return {}
    return _costliest(_device_times(events) if cuda else _host_times(events))


def _costliest(times: list[tuple[str, float]]) -> dict[str, int]:
    counts = Counter(name for name, _ in times)
    totals: dict[str, float] = {}
    for name, microseconds in times:
        totals[name] = totals.get(name, 0.0) + microseconds
    names = sorted(totals, key=lambda name: totals[name], reverse=True)
    return {name: counts[name] for name in names[:LIMIT]}


def _device_times(events: list[Any]) -> list[tuple[str, float]]:
    cpu = torch.autograd.DeviceType.CPU
    return [(event.name, event.device_time_total) for event in events if event.device_type != cpu]


def _host_times(events: list[Any]) -> list[tuple[str, float]]:
    times = []
    for event in events:
        if event.cpu_parent is None:
            times += [(inner.name, inner.cpu_time_total) for inner in _routines(event)]
    return times


def _routines(event: Any) -> list[Any]:
    """The innermost operators that do arithmetic: `aten::mm`, not the `aten::linear` around it.

    A routine of a library counts as one, whatever it calls."""
    namespace, colons, _ = event.name.partition("::")
    is_operator = bool(colons) and namespace not in ("autograd", "torch")
    is_routine = is_operator and event.name not in MOVES
    if is_routine and any(library in event.name for library in LIBRARIES):
        return [event]
    inner: list[Any] = []
    for child in event.cpu_children:
        inner += _routines(child)
    if inner:
        return inner
    return [event] if is_routine or "fused" in event.name else []
