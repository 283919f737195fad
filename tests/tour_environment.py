"""The environment that `make tour` makes, from packages that are installed here.

It has the tour's extras with all that they need, and nothing else. Links instead of an installation
save minutes."""

from __future__ import annotations

import re
import sys
import venv
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]


def make_environment(folder: Path) -> Path:
    """The Python of the new environment."""
    venv.create(folder)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / version / "site-packages"
    for name in required_names("steptime", tour_extras()):
        link_distribution(distribution(name), packages)
    return folder / "bin" / "python"


def tour_extras() -> set[str]:
    found = re.search(r"^TOUR := (.*)$", (ROOT / "Makefile").read_text(), re.M)
    assert found is not None
    return set(found[1].split(","))


def required_names(name: str, extras: set[str]) -> set[str]:
    """The distribution and all that it requires, at any depth."""
    names: set[str] = set()
    waiting = [(name, frozenset(extras))]
    seen = set()
    while waiting:
        name, chosen = waiting.pop()
        if (name, chosen) in seen:
            continue
        seen.add((name, chosen))
        names.add(name)
        for text in distribution(name).requires or ():
            requirement = Requirement(text)
            if is_needed(requirement, chosen):
                waiting.append((requirement.name, frozenset(requirement.extras)))
    return names


def is_needed(requirement: Requirement, extras: frozenset[str]) -> bool:
    if requirement.marker is None:
        return True
    return any(requirement.marker.evaluate({"extra": extra}) for extra in extras or {""})


def link_distribution(package: Distribution, folder: Path) -> None:
    for file in package.files or ():
        top = file.parts[0]
        if top not in ("..", "__pycache__") and not (folder / top).exists():
            (folder / top).symlink_to(package.locate_file(top))
