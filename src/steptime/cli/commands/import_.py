"""`steptime import PATH…`: takes other tools' results into the store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steptime.cli import exit_codes, output
from steptime.cli.options import Json
from steptime.core.errors import SteptimeError

if TYPE_CHECKING:
    from steptime.cli.render.imports import ImportSummary
    from steptime.formats import Original
    from steptime.store.imports import Imports


def import_command(
    paths: Annotated[list[Path], typer.Argument(help="Files, or folders with everything in them.")],
    rows: Annotated[bool, typer.Option("--rows", help="Show what became of every row.")] = False,
    json: Json = False,
) -> None:
    """Import results of other tools.

    Reads DLBS, tf_cnn_benchmarks, MLPerf, timm, DeepBench and others, and recognises a format by
    its content. Keeps the original file too. Importing a file again changes nothing."""
    from steptime.cli.render import imports as render
    from steptime.cli.request import store_folder

    files = [file for path in paths for file in find_files(path)]
    if not files:
        raise SteptimeError(f"There is no file in {', '.join(map(str, paths))}.")
    summary = import_files(files, store_folder())
    if json:
        output.print_json(render.to_document(summary, rows=rows))
    else:
        render.show(summary, rows=rows)
    if not summary.readings:
        raise typer.Exit(exit_codes.ALL_FAILED)
    if summary.unreadable:
        raise typer.Exit(exit_codes.SOME_FAILED)


# The name under which a file is stored, and its path.
NamedFile = tuple[str, Path]


def find_files(path: Path) -> Iterator[NamedFile]:
    """Names begin at the folder that was named: a store keeps no paths of this machine."""
    if path.is_dir():
        folder = path.resolve().name
        for file in sorted(path.rglob("*")):
            if file.is_file():
                yield f"{folder}/{file.relative_to(path).as_posix()}", file
    elif path.is_file():
        yield path.name, path
    elif path.exists():
        raise SteptimeError(f"{path} is a pipe or a device: only files and folders are imported.")
    else:
        raise SteptimeError(f"There is no file or folder {path}.")


def import_files(files: list[NamedFile], store: Path) -> ImportSummary:
    from steptime import formats
    from steptime.cli.render.imports import ImportSummary
    from steptime.cli.render.watch import Progress
    from steptime.store.imports import Imports

    summary = ImportSummary()
    names: dict[str, str] = {}
    with Progress() as progress, Imports(store) as imports:
        for number, (name, path) in enumerate(files, 1):
            progress.show(f"{number} of {len(files)}: {name}")
            original = _read_original(name, path, summary)
            if original is None:
                continue
            # The same file twice, for example in an archive and unpacked.
            if original.sha256 in names:
                summary.duplicates[name] = names[original.sha256]
            elif formats.recognise(original):
                names[original.sha256] = name
                _import_file(original, imports, summary)
            else:
                summary.unrecognised.append(name)
    return summary


def _import_file(original: Original, imports: Imports, summary: ImportSummary) -> None:
    from steptime import formats

    reading = formats.read(original)
    summary.readings.append((original, reading))
    # False if the store has the same content already.
    summary.changed += imports.keep(original.sha256, original.data, reading.runs)
    if reading.broken:
        summary.unreadable[original.name] = reading.broken


def _read_original(name: str, path: Path, summary: ImportSummary) -> Original | None:
    """None if the file cannot be read; the summary then has the reason."""
    from steptime.formats import MOST_BYTES, Original

    def read_neighbour(relative: str) -> bytes | None:
        neighbour = path.parent / relative
        try:
            if neighbour.is_file() and neighbour.stat().st_size <= MOST_BYTES:
                return neighbour.read_bytes()
        except (OSError, ValueError):
            pass
        # Only a hint: a reader works without the neighbour.
        return None

    try:
        if path.stat().st_size > MOST_BYTES:
            summary.unreadable[name] = f"larger than {MOST_BYTES >> 20} MiB"
            return None
        location = path.resolve().as_posix()
        original = Original(name, path.read_bytes(), location, beside=read_neighbour)
        # Unpack it now: a file that unpacks to too much must stop no other.
        _ = original.head
        return original
    except OSError as problem:
        summary.unreadable[name] = str(problem.strerror)
        return None
    except SteptimeError as problem:
        summary.unreadable[name] = str(problem)
        return None
