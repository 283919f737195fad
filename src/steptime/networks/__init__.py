"""SHELF: one file per family of networks. A file's `@network` functions are on the shelf by being there."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import ModuleType

from steptime import plugins
from steptime.core.errors import SteptimeError, WrongGraph, unknown
from steptime.graph import Network


def catalogue() -> dict[str, Network]:
    found = [
        network
        for family in plugins.names("networks")
        for network in _networks(plugins.load("networks", family))
    ]
    return {network.name: network for network in sorted(found, key=lambda network: network.name)}


def load(name: str) -> Network:
    """A network of the shelf, or `FILE.py:NAME` from a file of the user's own."""
    path, found, inner = name.rpartition(":")
    if found and path.endswith(".py"):
        return _from_file(Path(path), inner)
    known = catalogue()
    if name not in known:
        raise unknown("network", name, known)
    return known[name]


def _networks(module: ModuleType) -> list[Network]:
    return [value for value in vars(module).values() if isinstance(value, Network)]


def _from_file(path: Path, name: str) -> Network:
    if not path.is_file():
        raise SteptimeError(f"No file {str(path)!r} for the network {name!r}; give FILE.py:NAME.")
    spec = importlib.util.spec_from_file_location(f"steptime_network_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with _guest(path):
        spec.loader.exec_module(module)
    known = {network.name: network for network in _networks(module)}
    if name not in known:
        raise unknown("network", name, known, where=f"{path}: ")
    with _guest(path):
        _ = known[name].graph  # built here, where it is guarded
    return known[name]


@contextmanager
def _guest(path: Path) -> Iterator[None]:
    """A user's own code: it cannot end the command, and what it prints is no part of a result."""
    try:
        with redirect_stdout(sys.stderr):
            yield
    except WrongGraph:
        raise  # it says already what is wrong
    except (Exception, SystemExit) as problem:
        raise SteptimeError(
            f"{path} cannot be read: {type(problem).__name__}: {problem}"
        ) from problem
