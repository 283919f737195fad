"""What a framework's folder says about itself, read from its source: to import it takes seconds, or fails."""

from __future__ import annotations

import ast
import importlib.util
import re
from dataclasses import dataclass
from typing import Any

from steptime import plugins


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
    needs: frozenset[str]  # the packages that it declares in REQUIRES


def read(framework: str) -> PlugIn:
    path = plugins.source("frameworks", framework)
    if path is None:
        return PlugIn("", "", frozenset())
    opening = ast.parse(path.read_text("utf-8"))
    title = (ast.get_docstring(opening) or "").partition("\n")[0].partition(". ")[0].rstrip(".")
    install = plugins.constant("frameworks", framework, "INSTALL")
    needs = re.findall(r"\w+", plugins.constant("frameworks", framework, "REQUIRES"))
    return PlugIn(title, install, frozenset(needs))


def modes(framework: str) -> list[str]:
    """The first is the one to use when nobody asks for another. Empty where its source does not tell."""
    try:
        return re.findall(r"\w+", plugins.constant("frameworks", framework, "MODES"))
    except (ImportError, SyntaxError, ValueError):
        return []  # of another package, and broken: told when it is used
