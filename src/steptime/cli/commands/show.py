"""`steptime show`: a network with its layers, a stored result, or a plan of HPE DLBS as TOML."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from steptime.cli.options import Json
from steptime.cli.output import echo_verbatim, print_json
from steptime.cli.request import (
    DLBS_SUFFIX,
    readable_store,
    translate_dlbs_plan,
    warn_of_problems,
)
from steptime.core.errors import SteptimeError

# Hexadecimal digits only: no shipped network has such a name.
RESULT_ID = re.compile(r"[0-9a-f-]{4,}")


def show_command(
    network: Annotated[
        str,
        typer.Argument(
            help="A network's name or FILE.py:NAME; the id of a result; a DLBS plan, FILE.json."
        ),
    ],
    json: Json = False,
) -> None:
    """Show a network, a stored result or a DLBS plan.

    For a network: layers, parameters, FLOPs and fingerprint. A plan of HPE DLBS is shown as a TOML
    plan."""
    if network == "cpu" or network.startswith("cuda"):
        raise SteptimeError(
            f"{network!r} is a device, not a network; `steptime machine` shows devices."
        )
    if network.endswith(".py"):
        raise SteptimeError(f"{network} is a file: name the network in it too, {network}:NAME.")
    if network.endswith(DLBS_SUFFIX):
        _show_plan(network, json=json)
    elif RESULT_ID.fullmatch(network):
        _show_results(network, json=json)
    else:
        _show_network(network, json=json)


def _show_network(name: str, *, json: bool) -> None:
    from steptime import networks
    from steptime.cli.render.network import show

    document = networks.describe(name)
    if json:
        print_json(document)
    else:
        show(document)


def _show_plan(name: str, *, json: bool) -> None:
    toml, notes = translate_dlbs_plan(name)
    if json:
        print_json({"toml": toml, "notes": notes})
    else:
        echo_verbatim(toml.rstrip())


def _show_results(identifier: str, *, json: bool) -> None:
    from steptime.analysis.certificates import TASK, read_certificates
    from steptime.cli.render import results
    from steptime.cli.stored import find_records

    store = readable_store()
    try:
        records = find_records(identifier, store)
    finally:
        # Also after an error: the result that was not found may be in a damaged journal.
        warn_of_problems(store)
    certificates = read_certificates(store.attempts(TASK))
    if json:
        print_json(results.to_document(records, certificates))
    else:
        results.show(records, certificates)
