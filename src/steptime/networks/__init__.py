"""A plug-in folder: one file per family of networks, each of them a `@network` function."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from steptime import plugins
from steptime.core.errors import SteptimeError, UnreadableFile, unknown
from steptime.graph import Network
from steptime.graph.document import to_document
from steptime.networks import _user_file
from steptime.networks._user_file import check_file, is_user_file

__all__ = ["catalogue", "check_file", "describe", "is_user_file", "load"]


def catalogue() -> dict[str, Network]:
    networks: list[Network] = []
    for family in plugins.names("networks"):
        networks += _networks(plugins.load("networks", family))
    networks.sort(key=lambda network: network.name)
    return {network.name: network for network in networks}


def describe(name: str) -> dict[str, Any]:
    """The network as plain data. No code of a user's file runs in this process."""
    if is_user_file(name):
        return _user_file.describe(name)
    return _describe_shipped(name)


@cache
def _describe_shipped(name: str) -> dict[str, Any]:
    """Cached: a plan of thousands of cases has few networks."""
    return to_document(load(name))


def load(name: str) -> Network:
    """A network of the catalogue, or `FILE.py:NAME` from the user's own file, which it runs."""
    if is_user_file(name):
        check_file(name)
        path, _, inner_name = name.rpartition(":")
        return _load_file(Path(path), inner_name)
    networks = catalogue()
    if name not in networks:
        raise unknown("network", name, networks)
    return networks[name]


def _networks(module: ModuleType) -> list[Network]:
    return [value for value in vars(module).values() if isinstance(value, Network)]


def _load_file(path: Path, name: str) -> Network:
    spec = importlib.util.spec_from_file_location(f"steptime_network_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with _user_code(path):
        spec.loader.exec_module(module)
    networks = {network.name: network for network in _networks(module)}
    if name not in networks:
        raise UnreadableFile(str(unknown("network", name, networks, where=f"{path}: ")))
    # The graph is built now, because only here its code is guarded.
    with _user_code(path):
        _ = networks[name].graph
    return networks[name]


@contextmanager
def _user_code(path: Path) -> Iterator[None]:
    """Guards the user's code: it cannot end the command, and its prints go to stderr."""
    try:
        with redirect_stdout(sys.stderr):
            yield
    # It says already what is wrong.
    except SteptimeError as problem:
        raise UnreadableFile(str(problem)) from problem
    # SystemExit too: an imported file may call exit().
    except (Exception, SystemExit) as problem:
        raise UnreadableFile(
            f"{path} cannot be read: {type(problem).__name__}: {problem}"
        ) from problem
