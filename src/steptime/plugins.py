"""Find plugins by file name: a plugin is one module or folder in a package such as `frameworks`.

Other installed packages may add plugins through the entry-point group `steptime.PACKAGE`."""

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


def names(package: str) -> list[str]:
    """All plugins, from the folder and the entry points. Imports none of them."""
    spec = importlib.util.find_spec(f"steptime.{package}")
    assert spec is not None and spec.submodule_search_locations is not None, package
    modules = pkgutil.iter_modules(spec.submodule_search_locations)
    shipped = {module.name for module in modules if not module.name.startswith("_")}
    return sorted(shipped | set(_entry_points(package)))


def load(package: str, name: str) -> ModuleType:
    existing = names(package)
    if name not in existing:
        raise unknown(package.rstrip("s"), name, existing)
    entry_point = _entry_points(package).get(name)
    if entry_point is None:
        return importlib.import_module(f"steptime.{package}.{name}")
    module: ModuleType = entry_point.load()
    return module


def source(package: str, name: str) -> Path | None:
    """The plugin's file. Found without importing it, which may take seconds, or fail."""
    entry_point = _entry_points(package).get(name)
    module = entry_point.module if entry_point else f"steptime.{package}.{name}"
    spec = importlib.util.find_spec(module)
    return Path(spec.origin) if spec and spec.origin else None


def program_digest(framework: str) -> str:
    """Of all code that makes a framework's programs: its own, and the graph's.

    A result or a certificate holds for this code only."""
    # Imported late: help does not need it.
    import hashlib

    graph = importlib.util.find_spec("steptime.graph")
    assert graph is not None and graph.origin is not None
    files = source_files(Path(graph.origin)) + source_files(source("frameworks", framework))
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.name}\n".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def source_files(path: Path | None) -> list[Path]:
    """All files of a plugin or package: it is one module or a folder."""
    if path is None:
        return []
    if path.name == "__init__.py":
        return sorted(path.parent.rglob("*.py"))
    return [path]


def read_constant(package: str, name: str, constant: str) -> Any:
    """The value that the plugin's source assigns to a constant; None if it assigns none."""
    path = source(package, name)
    if path is None:
        return None
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == constant:
            return ast.literal_eval(node.value)
    return None


@cache
def _entry_points(package: str) -> dict[str, EntryPoint]:
    """Cached: to read what all installed packages offer takes tens of milliseconds."""
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=f"steptime.{package}")}
