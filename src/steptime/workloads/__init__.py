"""PLUGINS: one file for each kind of workload.

A kind lists the names it knows, describes a workload, and builds its work."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from steptime import networks, plugins
from steptime.core.case import Case
from steptime.core.errors import unknown
from steptime.networks import check_file, is_user_file

__all__ = ["check_file", "describe", "is_user_file", "load", "names"]


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


def describe(case: Case) -> dict[str, Any]:
    """What the work is, for a process that must not run a user's code. A worker may."""
    kind = load(case.workload)
    facts: dict[str, Any]
    if is_user_file(case.workload):
        facts = kind.describe_network(case, networks.describe(case.workload))
    else:
        facts = kind.describe(case)
    return facts
