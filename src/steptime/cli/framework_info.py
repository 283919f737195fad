"""What a framework's folder says about itself, read from its source: to import it takes seconds, or fails."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steptime import plugins

EVERYWHERE = {"steptime", "numpy", "safetensors", *sys.stdlib_module_names}


def frameworks() -> list[dict[str, Any]]:
    entries = []
    for name in plugins.names("frameworks"):
        plug_in = read(name)
        missing = [
            package for package in plug_in.needs if importlib.util.find_spec(package) is None
        ]
        here = f"no: {plug_in.install}" if missing else "yes"
        entries.append({"name": name, "installed": here, "title": plug_in.title})
    return entries


@dataclass(frozen=True)
class PlugIn:
    title: str
    install: str
    needs: frozenset[str]  # packages that it imports and that do not come with steptime


def read(framework: str) -> PlugIn:
    path = plugins.source("frameworks", framework)
    if path is None:
        return PlugIn("", "", frozenset())
    opening = ast.parse(path.read_text("utf-8"))
    title = (ast.get_docstring(opening) or "").partition("\n")[0].partition(". ")[0].rstrip(".")
    files = path.parent.glob("*.py") if path.name == "__init__.py" else [path]
    needs = {name for file in files for name in _imports(file)}
    return PlugIn(
        title, plugins.constant("frameworks", framework, "INSTALL"), frozenset(needs - EVERYWHERE)
    )


def modes(framework: str) -> list[str]:
    """The first is the one to use when nobody asks for another. Empty where its source does not tell."""
    try:
        return re.findall(r"\w+", plugins.constant("frameworks", framework, "MODES"))
    except (ImportError, SyntaxError, ValueError):
        return []  # of another package, and broken: told when it is used


def _imports(file: Path) -> Iterator[str]:
    """At the top of the file alone: what is imported inside a function is optional."""
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
