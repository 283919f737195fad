"""`steptime store …`: looks after a store: check it, compact it, send it to a database, merge another one into it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steptime.cli import output

if TYPE_CHECKING:
    from steptime.store.check import CheckReport
    from steptime.store.folder import FolderStore

WRONG = 1
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def check_command(json: Json = False) -> None:
    """Reads everything and tells what is wrong; changes nothing. Exit code 1 when something is wrong."""
    from steptime.store.check import check

    store = _store()
    report = check(store)
    if json:
        output.document({"store": str(store.path), **vars(report)})
    else:
        _tell(store, report)
    if report.wrong:
        raise typer.Exit(WRONG)


def compact_command(json: Json = False) -> None:
    """Moves ended journals into Parquet parts: smaller, and quicker to read. Running ones are not touched."""
    from steptime.store.compaction import compact

    store = _store()
    done = compact(store)
    _warn(done.problems)
    if json:
        output.document({"store": str(store.path), **vars(done)})
        return
    output.say(
        f"{_counted(done.moved, 'journal')} moved into {_counted(len(done.part_files), 'part')} of {store.path}."
    )
    if done.finished:
        output.say(f"{_counted(done.finished, 'journal')} removed that a part held already.")
    _say_left(done.left)


def push_command(
    database: Annotated[
        str,
        typer.Argument(
            envvar="STEPTIME_DATABASE", help="postgresql://USER@HOST/NAME; see also PGPASSWORD."
        ),
    ],
    json: Json = False,
) -> None:
    """Sends attempts, imported rows, machines and blobs to PostgreSQL; what is there is not sent. Removes nothing."""
    from steptime.store.postgres import public_address
    from steptime.store.push import push

    done = push(_store(), database)
    _warn(done.problems)
    if json:
        output.document({"database": public_address(database), **vars(done)})
        return
    sent = f"{_counted(done.runs, 'attempt')} and {_counted(done.foreign_runs, 'imported row')}"
    files = f"{_counted(done.machines, 'machine')} and {_counted(done.blobs, 'blob')}"
    output.say(
        f"{sent}, {files} sent to {public_address(database)}; {done.present:,} attempts and rows were there."
    )
    _say_left(done.left)


def merge_command(
    other: Annotated[Path, typer.Argument(help="The folder of another store; it is only read.")],
    json: Json = False,
) -> None:
    """Copies what another store holds and this one lacks. Merging twice changes nothing."""
    from steptime.store.folder import FolderStore
    from steptime.store.merge import merge

    store = _store()
    done = merge(store, FolderStore(other))
    _warn(done.problems)
    if json:
        output.document({"store": str(store.path), **vars(done)})
        return
    output.say(f"Copied into {store.path}: {_counts(done.copied) or 'nothing'}.")
    output.say(f"There already: {_counts(done.present) or 'nothing'}.")
    _say_left(done.left)


COMMANDS: dict[str, Callable[..., None]] = {
    "check": check_command,
    "compact": compact_command,
    "push": push_command,
    "merge": merge_command,
}


def _store() -> FolderStore:
    from steptime.cli.request import store_folder
    from steptime.store.folder import FolderStore

    return FolderStore(store_folder())


def _tell(store: FolderStore, report: CheckReport) -> None:
    output.say(f"{report.attempts:,} attempts in {store.path}.")
    counters = {
        "journals": report.journals,
        "parts": report.part_files,
        "blobs": report.blobs,
        "imports": report.imports,
    }
    for name, counts in counters.items():
        output.say(f"{name:<10}{_counts(counts) or 'none'}")
    if report.duplicates:
        output.say(f"{report.duplicates:,} stand in two files, one of which is read.")
    if report.drafts:
        output.say(f"{_counted(report.drafts, 'draft')} of killed writers, which nobody reads.")
    for sentence in report.wrong:
        output.say(f"wrong: {sentence}")
    if not report.wrong:
        output.say("Nothing is wrong.")


def _warn(problems: list[str]) -> None:
    for problem in problems:
        output.warn(f"note: {problem}")


def _say_left(left: Counter[str]) -> None:
    if left:
        output.say(f"Left as they are: {_counts(left)}.")


def _counts(counts: Counter[str]) -> str:
    """`files 3, rows 12`: what there is none of is not said."""
    return ", ".join(
        f"{name.replace('_', ' ')} {count:,}" for name, count in counts.items() if count
    )


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"
