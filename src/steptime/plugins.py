"""Finds plug-ins by file name: a shelf is a package, a plug-in is one module or folder in it.

Other installed packages may add to a shelf through the entry-point group `steptime.SHELF`."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import pkgutil
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from steptime.core.errors import unknown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def names(shelf: str) -> list[str]:
    """Everything on the shelf, read from the folder and the entry points: nothing is imported."""
    spec = importlib.util.find_spec(f"steptime.{shelf}")
    assert spec is not None and spec.submodule_search_locations is not None, shelf
    modules = pkgutil.iter_modules(spec.submodule_search_locations)
    own = {module.name for module in modules if not module.name.startswith("_")}
    return sorted(own | set(_foreign(shelf)))


def load(shelf: str, name: str) -> ModuleType:
    if name not in (known := names(shelf)):
        raise unknown(shelf.rstrip("s"), name, known)
    foreign = _foreign(shelf).get(name)
    if foreign is not None:
        module: ModuleType = foreign.load()
        return module
    return importlib.import_module(f"steptime.{shelf}.{name}")


def source(shelf: str, name: str) -> Path | None:
    """Where the plug-in is written: to import it may take seconds, or fail."""
    foreign = _foreign(shelf).get(name)
    spec = importlib.util.find_spec(foreign.module if foreign else f"steptime.{shelf}.{name}")
    return Path(spec.origin) if spec and spec.origin else None


def read_constant(shelf: str, name: str, constant: str) -> Any:
    """The value that the plugin's source assigns to a constant; None if it assigns none."""
    path = source(shelf, name)
    if path is None:
        return None
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == constant:
            return ast.literal_eval(node.value)
    return None


@cache  # reading what all installed packages offer takes tens of milliseconds
def _foreign(shelf: str) -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=f"steptime.{shelf}")}
