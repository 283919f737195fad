"""What a framework's folder says about itself.

Read from its source: to import a framework takes seconds, or fails."""

from __future__ import annotations

import ast
import importlib.util
from dataclasses import dataclass
from typing import Any

from steptime import plugins


def frameworks() -> list[dict[str, Any]]:
    entries = []
    for name in plugins.names("frameworks"):
        info = read_info(name)
        # find_spec looks for the package without importing it.
        missing = [p for p in info.packages if importlib.util.find_spec(p) is None]
        installed = f"no: {info.install}" if missing else "yes"
        entries.append({"name": name, "installed": installed, "title": info.title})
    return entries


def installed_frameworks() -> list[str]:
    return [entry["name"] for entry in frameworks() if entry["installed"] == "yes"]


@dataclass(frozen=True)
class FrameworkInfo:
    title: str
    install: str
    packages: frozenset[str]  # that it declares in REQUIRES


def read_info(framework: str) -> FrameworkInfo:
    path = plugins.source("frameworks", framework)
    if path is None:
        return FrameworkInfo("", "", frozenset())
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    # The first sentence of the docstring is the title; it may take two lines.
    paragraph = " ".join(docstring.partition("\n\n")[0].split())
    title = paragraph.partition(". ")[0].rstrip(".")
    install = plugins.read_constant("frameworks", framework, "INSTALL") or ""
    packages = plugins.read_constant("frameworks", framework, "REQUIRES") or ()
    return FrameworkInfo(title, install, frozenset(packages))


def modes(framework: str) -> list[str]:
    """The first is the default. Empty if the source does not list them."""
    try:
        return list(plugins.read_constant("frameworks", framework, "MODES") or ())
    except (ImportError, SyntaxError, ValueError):
        # A broken plugin of another package: reported when it is used.
        return []
