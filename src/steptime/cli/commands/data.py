"""`steptime data …`: which data sets are here, and fetch those that are not."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from steptime.cli import output
from steptime.cli.options import DataFolder, Json
from steptime.core.errors import SteptimeError

SUMMARY = "List data sets and fetch missing ones."


def list_command(data: DataFolder = None, json: Json = False) -> None:
    """List data sets: which are here, and where.

    Every file is compared with its checksum."""
    from steptime.cli.data_info import data_sets
    from steptime.cli.render.data import show_data_sets

    folder = _data_folder(data)
    entries = data_sets(folder)
    if json:
        output.print_json({"folder": str(folder.absolute()), "sets": entries})
    else:
        show_data_sets(folder.absolute(), entries)


def fetch_command(
    names: Annotated[list[str], typer.Argument(help="As `steptime data list` names them.")],
    data: DataFolder = None,
    mirror: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="URL",
            help="A folder with files of the same names. Default: the public addresses.",
        ),
    ] = "",
    json: Json = False,
) -> None:
    """Download data sets from their public addresses.

    A file is kept only if its checksum is right. Files that are here stay as they are."""
    from steptime import plugins
    from steptime.cli.render.data import download_bar
    from steptime.core.errors import unknown
    from steptime.data.fetch import fetch

    existing = plugins.names("data.sets")
    for name in names:
        if name not in existing:
            raise unknown("data set", name, existing)
    if mirror and not mirror.startswith(("http://", "https://")):
        raise SteptimeError(f"--from is an address, as https://HOST/FOLDER; found {mirror!r}.")
    folder = _data_folder(data)
    sets = {name: plugins.load("data.sets", name) for name in names}
    paths: dict[str, list[str]] = {}
    for name, plugin in sets.items():
        new_files = fetch(plugin, folder, mirror, download_bar)
        paths[name] = [str(path.absolute()) for path in new_files]
        if not json:
            _show_fetched(name, new_files, folder)
    if json:
        output.print_json({"folder": str(folder.absolute()), "fetched": paths})


def _show_fetched(name: str, new_files: list[Path], folder: Path) -> None:
    from steptime.cli.render.format import plural
    from steptime.core.format import byte_count

    if not new_files:
        output.echo(f"{name}: complete in {folder.absolute()}, nothing to fetch.")
        return
    size = byte_count(sum(path.stat().st_size for path in new_files))
    where = new_files[0].parent.absolute()
    output.echo(f"{name}: {plural(len(new_files), 'file')} ({size}) into {where}.")


def _data_folder(data: Path | None) -> Path:
    from steptime.data.sets import VARIABLE, data_folder

    if data is not None:
        os.environ[VARIABLE] = str(data)
    return data_folder()


COMMANDS: dict[str, Callable[..., Any]] = {"list": list_command, "fetch": fetch_command}
