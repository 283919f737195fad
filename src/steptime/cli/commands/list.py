"""`steptime list`: what there is to measure, with what, and how. Imports no framework to say so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

Entry = dict[str, Any]
NONE_YET = "No results yet: `steptime run` measures some, `steptime --store DIR list results` looks elsewhere."


def list_command(
    what: Annotated[
        str,
        typer.Argument(
            help="networks, workloads, frameworks, presets or plans; all these if left out; or results."
        ),
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """What there is: networks, workloads, frameworks, presets, plans; and what was measured: results."""
    from steptime.cli.output import document, say
    from steptime.core.errors import unknown

    known = {**SECTIONS, "results": _results}
    if what and what not in known:
        raise unknown("list of", what, known)
    found = {
        name: section()
        for name, section in (known if what else SECTIONS).items()
        if what in ("", name)
    }
    if json:
        document(found)
        return
    for name, entries in found.items():
        if not what:
            say(f"{name}:")
        _show(entries) if entries else say(NONE_YET)
        if not what:
            say()


def _networks() -> list[Entry]:
    from steptime import networks

    return [
        {
            "name": network.name,
            "title": network.title,
            "parameters": network.graph.trainable_parameters,
            "forward_flops": network.graph.forward_flops,
        }
        for network in networks.catalogue().values()
    ]


def _workloads() -> list[Entry]:
    from steptime import plugins, workloads

    kinds = {kind: plugins.load("workloads", kind).names() for kind in plugins.names("workloads")}
    return [
        {"name": name, "kind": kind}
        for name in workloads.names()
        for kind in kinds
        if name in kinds[kind]
    ]


def _frameworks() -> list[Entry]:
    from steptime.cli.framework_info import frameworks

    return frameworks()


def _presets() -> list[Entry]:
    from steptime.core.protocol import PRESETS, preset

    names = ("processes_least", "processes_most", "target", "budget_seconds")
    return [
        {"name": name, **{key: getattr(preset(name), key) for key in names}} for name in PRESETS
    ]


def _plans() -> list[Entry]:
    import tomllib
    from importlib import resources

    files = sorted(
        resources.files("steptime").joinpath("plans").iterdir(), key=lambda file: file.name
    )
    contents = {
        file.name: tomllib.loads(file.read_text("utf-8"))
        for file in files
        if file.name.endswith(".toml")
    }
    return [
        {"name": name.removesuffix(".toml"), "title": content.get("title", "")}
        for name, content in contents.items()
    ]


def _results() -> list[Entry]:
    """Not in the list of everything: reading a store takes its time, and NumPy."""
    from steptime.cli.render.stored import entries

    return entries()


SECTIONS: dict[str, Callable[[], list[Entry]]] = {
    "networks": _networks,
    "workloads": _workloads,
    "frameworks": _frameworks,
    "presets": _presets,
    "plans": _plans,
}


def _show(entries: list[Entry]) -> None:
    from steptime.cli.output import table

    columns = list(entries[0])
    numbers = [
        name for name in columns if any(not isinstance(entry[name], str) for entry in entries)
    ]
    heads = {name: name.removesuffix("_seconds").replace("_", " ") for name in columns}
    rows = [[_text(name, entry[name]) for name in columns] for entry in entries]
    table(list(heads.values()), rows, right=[heads[name] for name in numbers])


def _text(name: str, value: Any) -> str:
    from steptime.core.format import duration

    if value is None or isinstance(value, str):
        return value or ""
    return duration(value) if name.endswith("_seconds") else f"{value:,}"
