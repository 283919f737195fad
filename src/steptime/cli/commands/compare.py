"""`steptime compare A B`: is B faster? Measured now, or from stored results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from steptime.cli import exit_codes, output
from steptime.cli.options import Device, Framework, Json, Mode, Precision
from steptime.cli.request import (
    collect_settings,
    parse_settings,
    read_plan,
    readable_store,
    store_folder,
    warn_of_problems,
)
from steptime.core.errors import SteptimeError

if TYPE_CHECKING:
    from steptime.cli.render.comparison import ComparedPair
    from steptime.core.record import Record
    from steptime.run.compare import Refused
    from steptime.store.readable import ReadableStore


def compare_command(
    a: Annotated[
        str, typer.Argument(help="key=value,… to measure now, or the id of a result or a session.")
    ],
    b: Annotated[str, typer.Argument(help="The same. To measure now, only what differs from A.")],
    framework: Framework = "",
    mode: Mode = "",
    precision: Precision = "",
    device: Device = "",
    preset: Annotated[
        str, typer.Option(metavar="NAME", help="quick, standard, gold or single.")
    ] = "standard",
    force: Annotated[
        str,
        typer.Option(
            metavar="REASON", help="Compare although the work differs.", show_default=False
        ),
    ] = "",
    by_node: Annotated[
        bool, typer.Option("--by-node", help="A and B are queries; pair stored results by node.")
    ] = False,
    json: Json = False,
) -> None:
    """Compare two cases: is B faster than A?

    The verdict is faster, slower, same or inconclusive, with the ratio of times and its interval.

    To measure now: A is, for example, workload=lenet5,batch_size=64 and B mode=compiled. To
    compare stored results: A and B are ids of results, or of sessions, whose cases are compared
    one by one. With --by-node: A is, for example, 'data=scratch&device=k80' and B data=local.

    --framework, --mode, --precision and --device hold for both cases, unless A or B differs."""
    from steptime.run.compare import Refused

    flags = {"framework": framework, "mode": mode, "precision": precision, "device": device}
    both = collect_settings(None, flags)
    _check_arguments(a, b, both, by_node=by_node)
    try:
        if by_node:
            _compare_by_node(a, b, force, json=json)
        elif "=" in a:
            _show(_compare_live(a, b, both, preset, force), json=json)
        else:
            _compare_stored(a, b, force, json=json)
    except Refused as refusal:
        _refuse(refusal, json=json)


def _check_arguments(a: str, b: str, both: dict[str, Any], *, by_node: bool) -> None:
    # Ids are hexadecimal, so an equals sign tells a case or query from an id.
    if ("=" in a) != ("=" in b):
        raise SteptimeError(
            "Compare two cases (key=value,…) or two stored results (ids), not one of each."
        )
    if both and (by_node or "=" not in a):
        flag = f"--{next(iter(both))}"
        raise SteptimeError(f"{flag} is for cases to measure, not for stored results.")


def _compare_by_node(a: str, b: str, force: str, *, json: bool) -> None:
    from steptime.cli.node_query import compare_by_node
    from steptime.cli.render.by_node import show, to_document

    answer = compare_by_node(a, b, force)
    if json:
        output.print_json(to_document(answer))
    else:
        show(answer)


def _compare_live(a: str, b: str, both: dict[str, Any], preset: str, force: str) -> ComparedPair:
    from steptime.cli.render.comparison import ComparedPair
    from steptime.cli.render.watch import SessionWatch
    from steptime.run.compare import compare
    from steptime.store.folder import FolderStore

    settings = both | parse_settings(a.split(","))
    first = read_plan("", settings, preset)
    # B has the settings of A that it does not name itself.
    second = read_plan("", settings | parse_settings(b.split(",")), preset)
    store = FolderStore(store_folder())
    with SessionWatch() as watch:
        # A list of values would make several cases; the first counts.
        cases = (first.cases[0], second.cases[0])
        compared = compare(cases, second.protocol, store, force=force, watch=watch)
    return ComparedPair(compared.comparison, *compared.sides)


def _compare_stored(a: str, b: str, force: str, *, json: bool) -> None:
    from steptime.cli.render.compare_sessions import compare_sessions
    from steptime.cli.stored_comparison import compare_records

    store = readable_store()
    try:
        first = _measured_records(a, store)
        second = _measured_records(b, store)
    finally:
        # Also after an error: the result that was not found may be in a damaged journal.
        warn_of_problems(store)
    if len(first) == len(second) == 1:
        _show(compare_records(first[0], second[0], store, force), json=json)
    else:
        compare_sessions(first, second, store, force=force, json=json)


def _measured_records(identifier: str, store: ReadableStore) -> list[Record]:
    from steptime.cli.stored import find_records

    records = find_records(identifier, store)
    measured = [record for record in records if record.measurements]
    if not measured:
        label = records[0].case.label
        raise SteptimeError(f"{label} ({identifier}) has no measurement: {records[0].status}.")
    return measured


def _show(pair: ComparedPair, *, json: bool) -> None:
    from steptime.cli.render import comparison

    if json:
        output.print_json(comparison.to_document(pair))
    else:
        comparison.show(pair)


def _refuse(refusal: Refused, *, json: bool) -> None:
    if json:
        output.print_json({"verdict": None, "refused": refusal.reasons})
    else:
        output.echo("Refused: A and B are not the same work.")
        for reason in refusal.reasons:
            output.echo(f"  {reason}")
        output.echo('To compare them anyway, give a reason: --force "…".')
    raise typer.Exit(exit_codes.REFUSED)
