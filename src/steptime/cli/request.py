"""From the arguments of a command to a plan and a store."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steptime.cli import output
from steptime.core.case import Case
from steptime.core.errors import NotInstalled, SteptimeError, unknown
from steptime.store.files import read_text

if TYPE_CHECKING:
    from steptime.index.workspace import Workspace
    from steptime.plan.expand import Plan, Request
    from steptime.store.folder import FolderStore
    from steptime.store.postgres import PostgresStore
    from steptime.store.readable import ReadableStore

NOTHING_LEFT = "every case is excluded, nothing is left to run."
TOUR = "tour"
DLBS_SUFFIX = ".json"
# `--set protocol.target=0.01`: how to measure, not what.
PROTOCOL_PREFIX = "protocol."


def parse_settings(assignments: Iterable[str]) -> dict[str, Any]:
    """The settings in `key=value` arguments; a comma in a value makes it a list."""
    settings = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or not name or not value:
            raise SteptimeError(
                f"Settings are written key=value, for example batch_size=64; found {assignment!r}."
            )
        settings[name.strip()] = _parse_value(value)
    return settings


def collect_settings(assignments: Iterable[str] | None, flags: Mapping[str, str]) -> dict[str, Any]:
    """The settings of `--set` and of flags of their own; `--set` wins."""
    settings = {name: _parse_value(text) for name, text in flags.items() if text}
    return settings | parse_settings(assignments or [])


def _parse_value(text: str) -> Any:
    # Imported late: it is slow, and help does not need it.
    from steptime.plan.references import parse_scalar

    values = [parse_scalar(element) for element in text.split(",")]
    return values[0] if len(values) == 1 else values


def shipped_plans() -> dict[str, str]:
    """The text of each plan that comes with the package, by name."""
    from importlib.resources import files

    folder = files("steptime").joinpath("plans")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".toml"))
    plans = {}
    for name in names:
        plans[name.removesuffix(".toml")] = folder.joinpath(name).read_text(encoding="utf-8")
    return plans


def store_folder() -> Path:
    from steptime.store.postgres import is_database, public_address

    address = _store_address()
    # A database has no journals, so nothing can be measured into it.
    if is_database(address):
        raise SteptimeError(
            f"This command needs a folder (--store DIR): "
            f"{public_address(address)} can only be read. "
            "`steptime store push` copies a folder to a database."
        )
    return Path(address)


def readable_store() -> FolderStore | PostgresStore:
    """For commands that only read."""
    from steptime.store.folder import FolderStore
    from steptime.store.postgres import PostgresStore, is_database

    address = _store_address()
    return PostgresStore(address) if is_database(address) else FolderStore(address)


def open_workspace() -> Workspace:
    """The store with its index, ready to be queried."""
    from steptime.index.cache import Cache
    from steptime.index.workspace import Workspace

    store = readable_store()
    # The cache is shared by all stores and named by the store's full path.
    name = store.path.resolve() if isinstance(store.path, Path) else store.path
    workspace = Workspace(store, Cache(str(name)))
    workspace.refresh()
    warn_of_problems(store)
    return workspace


def guide_is_missing() -> NotInstalled:
    return NotInstalled("This command needs the guide extra: pip install 'steptime[guide]'")


def _store_address() -> str:
    return os.environ.get("STEPTIME_STORE") or "results"


def warn_of_problems(store: ReadableStore) -> None:
    """Name the journals that the latest reading had to skip."""
    for problem in store.problems:
        output.warn(f"note: {problem}")


def read_plan(name: str, settings: Mapping[str, Any], preset: str = "") -> Plan:
    """The plan in a file, a shipped plan, or, without a name, the plan that the settings make."""
    from dataclasses import replace

    from steptime.plan.expand import expand, expand_settings

    request = _request(settings, preset)
    if not name:
        return expand_settings("command line", request)
    notes: tuple[str, ...] = ()
    source = f"{name}: "
    if name.endswith(DLBS_SUFFIX):
        text, notes = translate_dlbs_plan(name, settings)
        source = f"{name}, as `steptime show {name}` prints it: "
        if notes:
            output.warn(
                f"note: not everything in {name} has a counterpart; "
                f"`steptime show {name}` lists it."
            )
    else:
        text = _read_text(name)
    try:
        plan = expand(text, request)
    except SteptimeError as problem:
        raise SteptimeError(f"{source}{problem}") from None
    return replace(plan, notes=(*notes, *plan.notes))


def read_case(verb: str, settings: Mapping[str, Any]) -> Case:
    """The one case that the settings describe."""
    cases = read_plan("", settings).cases
    if len(cases) != 1:
        raise SteptimeError(f"{verb} one case at a time; these settings give {len(cases)}.")
    return cases[0]


def translate_dlbs_plan(name: str, settings: Collection[str] = ()) -> tuple[str, tuple[str, ...]]:
    """A plan of HPE DLBS as TOML, and what has no counterpart in it."""
    from steptime.formats.dlbs_plan import translate_plan

    text = _read_text(name)
    try:
        translation = translate_plan(text, _known_names(), Path(name).stem, settings)
    except SteptimeError as problem:
        raise SteptimeError(f"{name}: {problem}") from None
    return translation.toml, translation.notes


def _known_names() -> dict[str, list[str]]:
    from steptime import plugins, workloads

    return {"workload": workloads.names(), "framework": plugins.names("frameworks")}


def _default_modes() -> dict[str, str]:
    """The first mode of each framework that has no eager mode."""
    from steptime import plugins
    from steptime.cli.framework_info import modes
    from steptime.plan.validate import DEFAULTS

    defaults = {}
    for framework in plugins.names("frameworks"):
        names = modes(framework)
        if names and DEFAULTS["mode"] not in names:
            defaults[framework] = names[0]
    return defaults


def _request(settings: Mapping[str, Any], preset: str) -> Request:
    from steptime.plan.expand import Request
    from steptime.plan.references import Outside

    # To ask a framework would import it, which takes seconds.
    device = "cuda:0" if Path("/dev/nvidia0").exists() else "cpu"
    # Not os.cpu_count(): a container or Slurm may allow fewer.
    cpus = str(len(os.sched_getaffinity(0)))
    case_settings = {}
    protocol = {}
    for name, value in settings.items():
        if name.startswith(PROTOCOL_PREFIX):
            protocol[name.removeprefix(PROTOCOL_PREFIX)] = value
        else:
            case_settings[name] = value
    return Request(
        plugin_names=_known_names(),
        modes=_default_modes(),
        outside=Outside(os.environ, {"device": device, "cpus": cpus}),
        settings=case_settings,
        protocol=protocol,
        preset=preset,
    )


def _read_text(name: str) -> str:
    path = Path(name)
    # A file wins over a shipped plan of the same name.
    if path.is_file():
        try:
            return read_text(path)
        except (OSError, UnicodeDecodeError) as problem:
            raise SteptimeError(f"The plan {name} cannot be read: {problem}.") from None
    plans = shipped_plans()
    if name in plans:
        return plans[name]
    if path.is_dir():
        raise SteptimeError(f"{name} is a folder, not a plan file.")
    if path.suffix in (".toml", DLBS_SUFFIX) or len(path.parts) > 1:
        raise SteptimeError(
            f"There is no plan file {name}. To measure one case without a plan, use flags: "
            "`steptime run --help`."
        )
    # A bare name: suggest the shipped plan that is spelled like it.
    raise unknown("plan file or shipped plan", name, plans)
