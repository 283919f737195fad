"""`steptime list`: what can be measured, with what and how, and what was measured.

Imports no framework."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from steptime.cli import output
from steptime.cli.options import Json

Entry = dict[str, Any]
NO_RESULTS = (
    "No results yet. `steptime run` measures some; "
    "`steptime --store DIR list results` reads another store."
)


def list_command(
    what: Annotated[
        str,
        typer.Argument(
            help="networks, workloads, frameworks, presets, plans, settings or results. "
            "Default: all except settings and results."
        ),
    ] = "",
    json: Json = False,
) -> None:
    """List networks, frameworks, plans, settings or results."""
    from steptime.cli.render.entries import show_entries
    from steptime.cli.setting_info import settings
    from steptime.core.errors import unknown

    sections = {**SECTIONS, "settings": settings, "results": _results}
    if what and what not in sections:
        raise unknown("list of", what, sections)
    names = [what] if what else list(SECTIONS)
    lists = {name: sections[name]() for name in names}
    if json:
        output.print_json(lists)
        return
    for name, entries in lists.items():
        if not what:
            output.echo(f"{name}:")
        if entries:
            show_entries(entries)
        else:
            output.echo(NO_RESULTS)
        if not what:
            output.echo()


def _networks() -> list[Entry]:
    from steptime import networks

    entries = []
    for network in networks.catalogue().values():
        entries.append(
            {
                "name": network.name,
                "title": network.title,
                "parameters": network.graph.trainable_parameters,
                "forward_flops": network.graph.forward_flops,
            }
        )
    return entries


def _workloads() -> list[Entry]:
    from steptime import plugins, workloads

    # The kind is the plugin that defines the workload.
    kinds = {}
    for kind in plugins.names("workloads"):
        for name in plugins.load("workloads", kind).names():
            kinds[name] = kind
    return [{"name": name, "kind": kinds[name]} for name in workloads.names()]


def _frameworks() -> list[Entry]:
    from steptime.cli.framework_info import frameworks

    return frameworks()


def _presets() -> list[Entry]:
    from steptime.core.protocol import PRESETS, preset

    entries = []
    for name in PRESETS:
        protocol = preset(name)
        entries.append(
            {
                "name": name,
                "processes_least": protocol.processes_least,
                "processes_most": protocol.processes_most,
                "target": protocol.target,
                "budget_seconds": protocol.budget_seconds,
            }
        )
    return entries


def _plans() -> list[Entry]:
    import tomllib

    from steptime.cli.request import shipped_plans

    entries = []
    for name, text in shipped_plans().items():
        entries.append({"name": name, "title": tomllib.loads(text).get("title", "")})
    return entries


def _results() -> list[Entry]:
    """Not in the list of everything: reading a store takes time, and NumPy."""
    from steptime.cli.stored import list_results

    return list_results()


SECTIONS: dict[str, Callable[[], list[Entry]]] = {
    "networks": _networks,
    "workloads": _workloads,
    "frameworks": _frameworks,
    "presets": _presets,
    "plans": _plans,
}
