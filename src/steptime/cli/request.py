"""From words on the command line to a plan and a store."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steptime.cli import output
from steptime.core.errors import SteptimeError, unknown

if TYPE_CHECKING:
    from steptime.index.workspace import Workspace
    from steptime.plan.expand import Plan, Request
    from steptime.store.folder import FolderStore
    from steptime.store.postgres import PostgresStore
    from steptime.store.readable import ReadableStore

NOTHING_LEFT = "every case is excluded, nothing is left to run."
TOUR = "tour"
FOREIGN = ".json"  # a plan of HPE DLBS
PROTOCOL = "protocol."  # `--set protocol.target=0.01`: how to measure, not what


def shipped() -> dict[str, str]:
    """The plans that come with the package, by name."""
    from importlib.resources import files

    found = files("steptime").joinpath("plans").iterdir()
    texts = {
        entry.name.removesuffix(".toml"): entry for entry in found if entry.name.endswith(".toml")
    }
    return {name: texts[name].read_text(encoding="utf-8") for name in sorted(texts)}


def store_folder() -> Path:
    from steptime.store.postgres import is_database, public_address

    if is_database(word := _store_word()):
        raise SteptimeError(
            f"Only stored results are read from {public_address(word)}. "
            "Everything else needs a folder (--store DIR); `steptime store push` sends it to a database."
        )
    return Path(word)


def reading_store() -> FolderStore | PostgresStore:
    """For commands that only read."""
    from steptime.store.folder import FolderStore
    from steptime.store.postgres import PostgresStore, is_database

    word = _store_word()
    return PostgresStore(word) if is_database(word) else FolderStore(word)


def open_workspace() -> Workspace:
    """The store with its index, ready to be queried."""
    from steptime.index.cache import Cache
    from steptime.index.workspace import Workspace

    store = reading_store()
    name = store.path.resolve() if isinstance(store.path, Path) else store.path
    workspace = Workspace(store, Cache(str(name)))
    workspace.refresh()
    warn_of_problems(store)
    return workspace


def _store_word() -> str:
    return os.environ.get("STEPTIME_STORE") or "results"


def warn_of_problems(store: ReadableStore) -> None:
    """Journals that the latest reading had to pass over."""
    for problem in store.problems:
        output.warn(f"note: {problem}")


def read_plan(name: str, settings: Mapping[str, Any], preset: str = "") -> Plan:
    """A file, the name of a shipped plan, or nothing: then the settings alone are the plan."""
    from dataclasses import replace

    from steptime.plan.expand import expand

    notes: tuple[str, ...] = ()
    request, place = _request(settings, preset), f"{name}: " if name else ""
    if name.endswith(FOREIGN):
        text, notes = dlbs_plan(name, settings)
        place = f"{name}, as `steptime show {name}` writes it: "
        if notes:
            output.warn(
                f"note: not all of {name} has a counterpart: `steptime show {name}` lists what has none."
            )
    else:
        text = _text(name) if name else 'name = "command line"'
    try:
        plan = expand(text, request)
    except SteptimeError as problem:
        raise SteptimeError(f"{place}{problem}") from None
    return replace(plan, notes=(*notes, *plan.notes))


def dlbs_plan(name: str, given: Collection[str] = ()) -> tuple[str, tuple[str, ...]]:
    """Another tool's plan file as ours, and what has no counterpart in it."""
    from steptime.formats.dlbs_plan import translated

    text = _text(name)
    try:
        found = translated(text, _words(), Path(name).stem, given)
    except SteptimeError as problem:
        raise SteptimeError(f"{name}: {problem}") from None
    return found.toml, found.notes


def _words() -> dict[str, list[str]]:
    from steptime import plugins, workloads

    return {"workload": workloads.names(), "framework": plugins.names("frameworks")}


def _modes() -> dict[str, str]:
    """Where a framework has no eager mode, its first one is meant unless a mode is said."""
    from steptime import plugins
    from steptime.cli.framework_info import modes
    from steptime.plan.validate import DEFAULTS

    found = {name: modes(name) for name in plugins.names("frameworks")}
    return {
        name: words[0] for name, words in found.items() if words and DEFAULTS["mode"] not in words
    }


def _request(settings: Mapping[str, Any], preset: str) -> Request:
    from steptime.plan.expand import Request
    from steptime.plan.references import Outside

    device = "cuda:0" if Path("/dev/nvidia0").exists() else "cpu"
    return Request(
        known=_words(),
        modes=_modes(),
        outside=Outside(os.environ, {"device": device, "cpus": str(len(os.sched_getaffinity(0)))}),
        settings={name: value for name, value in settings.items() if not name.startswith(PROTOCOL)},
        protocol={
            name.removeprefix(PROTOCOL): settings[name]
            for name in settings
            if name.startswith(PROTOCOL)
        },
        preset=preset,
    )


def _text(name: str) -> str:
    path = Path(name)
    if path.is_file():
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            raise SteptimeError(f"The plan {name} cannot be read: {problem}.") from None
    plans = shipped()
    if name in plans:
        return plans[name]
    if path.is_dir():
        raise SteptimeError(f"{name} is a folder, not a plan file.")
    if path.suffix in (".toml", FOREIGN) or len(path.parts) > 1:
        raise SteptimeError(
            f"There is no plan file {name}. `steptime run --help` says how to write settings as flags."
        )
    raise unknown("plan file or shipped plan", name, plans)
