"""PLUGINS: one file for each kind of workload.

A kind lists the names it knows, describes a workload, and builds its work."""

from __future__ import annotations

from types import ModuleType

from steptime import plugins
from steptime.core.errors import unknown


def names() -> list[str]:
    workload_names: list[str] = []
    for kind in plugins.names("workloads"):
        workload_names += plugins.load("workloads", kind).names()
    return sorted(workload_names)


def load(name: str) -> ModuleType:
    """The kind of workload that knows this name."""
    for kind in plugins.names("workloads"):
        module = plugins.load("workloads", kind)
        if module.knows(name):
            return module
    raise unknown("workload", name, names())
