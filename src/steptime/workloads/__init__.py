"""SHELF: one file per kind of workload. A kind says which names it knows, describes them, and builds the work."""

from __future__ import annotations

from types import ModuleType

from steptime import plugins
from steptime.core.errors import unknown


def names() -> list[str]:
    return sorted(
        name
        for kind in plugins.names("workloads")
        for name in plugins.load("workloads", kind).names()
    )


def load(name: str) -> ModuleType:
    """The kind that knows this workload."""
    for kind in plugins.names("workloads"):
        module = plugins.load("workloads", kind)
        if module.knows(name):
            return module
    raise unknown("workload", name, names())
