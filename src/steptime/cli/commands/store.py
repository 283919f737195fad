"""`steptime store …`: check a store, compact it, push it to a database, merge another into it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steptime.cli import exit_codes, output
from steptime.cli.options import Json
from steptime.cli.render import store as render

if TYPE_CHECKING:
    from steptime.store.folder import FolderStore

SUMMARY = "Check, compact, push, merge or convert a store."


def check_command(json: Json = False) -> None:
    """Check every file of the store; change nothing.

    The exit code is 1 if something is wrong."""
    from steptime.store.check import check

    store = _open_store()
    report = check(store)
    if json:
        output.print_json({"store": str(store.path), **vars(report)})
    else:
        render.show_check(store.path, report)
    if report.wrong:
        raise typer.Exit(exit_codes.ERROR)


def compact_command(json: Json = False) -> None:
    """Move finished journals into Parquet files.

    They are smaller and faster to read. Journals of running processes are left alone."""
    from steptime.store.compaction import compact

    store = _open_store()
    summary = compact(store)
    _warn_of_problems(summary.problems)
    if json:
        output.print_json({"store": str(store.path), **vars(summary)})
    else:
        render.show_compaction(store.path, summary)


def push_command(
    database: Annotated[
        str,
        typer.Argument(
            envvar="STEPTIME_DATABASE", help="postgresql://USER@HOST/NAME; see also PGPASSWORD."
        ),
    ],
    json: Json = False,
) -> None:
    """Copy the store to a PostgreSQL database.

    Sends attempts, imported rows, machines and blobs that the database does not have yet. Removes
    nothing."""
    from steptime.store.postgres import public_address
    from steptime.store.push import push

    summary = push(_open_store(), database)
    _warn_of_problems(summary.problems)
    if json:
        output.print_json({"database": public_address(database), **vars(summary)})
    else:
        render.show_push(public_address(database), summary)


def merge_command(
    other: Annotated[Path, typer.Argument(help="The folder of another store; it is only read.")],
    json: Json = False,
) -> None:
    """Copy what another store has and this one lacks.

    Merging twice changes nothing."""
    from steptime.store.folder import FolderStore
    from steptime.store.merge import merge

    store = _open_store()
    summary = merge(store, FolderStore(other))
    _warn_of_problems(summary.problems)
    if json:
        output.print_json({"store": str(store.path), **vars(summary)})
    else:
        render.show_merge(store.path, summary)


def convert_command(
    old: Annotated[Path, typer.Argument(help="The folder of an older store; it is only read.")],
    new: Annotated[Path, typer.Argument(help="The folder of the new store.")],
    json: Json = False,
) -> None:
    """Convert a store of an older version.

    Writes a new folder. Converting twice changes nothing. The exit code is 1 if something could
    not be converted."""
    from steptime.store.convert import convert

    summary = convert(old, new)
    _warn_of_problems(summary.problems)
    if json:
        output.print_json({"old": str(old), "new": str(new), **vars(summary)})
    else:
        render.show_conversion(new, summary)
    if summary.problems:
        output.warn(f"error: not everything could be converted; keep {old}.")
        raise typer.Exit(exit_codes.ERROR)


COMMANDS: dict[str, Callable[..., None]] = {
    "check": check_command,
    "compact": compact_command,
    "push": push_command,
    "merge": merge_command,
    "convert": convert_command,
}


def _open_store() -> FolderStore:
    from steptime.cli.request import store_folder
    from steptime.store.folder import FolderStore

    return FolderStore(store_folder())


def _warn_of_problems(problems: list[str]) -> None:
    for problem in problems:
        output.warn(f"note: {problem}")
