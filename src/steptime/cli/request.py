"""From words on the command line to a plan and a store."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steptime.cli import output
from steptime.core.errors import SteptimeError, unknown
from steptime.core.plan import Plan, Request, expand
from steptime.core.reference import Outside

if TYPE_CHECKING:
    from steptime.store.folder import FolderStore

NOTHING_LEFT = "every case is excluded, nothing is left to run."
TOUR = "tour"
PROTOCOL = "protocol."  # `--set protocol.target=0.01`: how to measure, not what


def shipped() -> dict[str, str]:
    """The plans that come with the package, by name."""
    found = files("steptime").joinpath("plans").iterdir()
    texts = {entry.name.removesuffix(".toml"): entry for entry in found if entry.name.endswith(".toml")}
    return {name: texts[name].read_text(encoding="utf-8") for name in sorted(texts)}


def store_folder() -> Path:
    return Path(os.environ.get("STEPTIME_STORE") or "results")


def warn_of_problems(store: FolderStore) -> None:
    """Journals that the latest reading had to pass over."""
    for problem in store.problems:
        output.warn(f"note: {problem}")


def read_plan(name: str, settings: Mapping[str, Any], profile: str = "") -> Plan:
    """A file, the name of a shipped plan, or nothing: then the settings alone are the plan."""
    text = _text(name) if name else 'name = "command line"'
    try:
        return expand(text, _request(settings, profile))
    except SteptimeError as problem:
        raise SteptimeError(f"{name}: {problem}" if name else str(problem)) from None


def _request(settings: Mapping[str, Any], profile: str) -> Request:
    from steptime import shelf, workloads

    device = "cuda:0" if Path("/dev/nvidia0").exists() else "cpu"
    return Request(
        known={"workload": workloads.names(), "framework": shelf.names("frameworks")},
        outside=Outside(os.environ, {"device": device, "cpus": str(len(os.sched_getaffinity(0)))}),
        settings={name: value for name, value in settings.items() if not name.startswith(PROTOCOL)},
        protocol={name.removeprefix(PROTOCOL): settings[name] for name in settings if name.startswith(PROTOCOL)},
        profile=profile,
    )


def _text(name: str) -> str:
    path = Path(name)
    if path.is_file():
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            raise SteptimeError(f"The plan {name} can not be read: {problem}.") from None
    if path.suffix == ".toml" or len(path.parts) > 1:
        raise SteptimeError(f"There is no plan file {name}. `steptime run --help` says how to write settings as flags.")
    if name not in (plans := shipped()):
        raise unknown("plan file or shipped plan", name, plans)
    return plans[name]
