"""`steptime import PATH…`: takes other tools' results into the store and tells what it took, what not, and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steptime.cli import output
from steptime.core.errors import SteptimeError

if TYPE_CHECKING:
    from steptime.cli.render.watch import Progress
    from steptime.formats import Original, Reading
    from steptime.store.imports import Imports

NOTHING_RECOGNISED, SOME_FAILED = 3, 4
UNKNOWN = "no reader recognises it"
MOST_NAMES = 20  # of unknown files, unless they are asked for row by row


@dataclass
class Taken:
    """What became of the files so far."""

    readings: list[tuple[Original, Reading]] = field(default_factory=list)
    changed: int = 0
    again: dict[str, str] = field(default_factory=dict)  # a file and the one that it is a copy of
    unknown: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)


def import_command(
    paths: Annotated[list[Path], typer.Argument(help="Files, or folders with everything in them.")],
    rows: Annotated[
        bool, typer.Option("--rows", help="Tell of every row what became of it.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Takes other tools' results into the store: DLBS, tf_cnn_benchmarks, MLPerf, timm, DeepBench and others.

    A file's format is seen from its content. The file itself is kept, too. Importing it again changes nothing."""
    from steptime.cli.render.watch import Progress
    from steptime.cli.request import store_folder

    files = [found for path in paths for found in _files(path)]
    if not files:
        raise SteptimeError(f"There is no file in {', '.join(map(str, paths))}.")
    with Progress() as progress:
        taken = _take(files, store_folder(), progress)
    if json:
        output.document(_document(taken, rows=rows))
    else:
        _tell(taken, rows=rows)
    if not taken.readings:
        raise typer.Exit(NOTHING_RECOGNISED)
    if taken.unreadable:
        raise typer.Exit(SOME_FAILED)


def _files(path: Path) -> Iterator[tuple[str, Path]]:
    """Each with the name that it is kept under: from the folder that was asked for on, not this machine's."""
    if path.is_dir():
        top = path.resolve().name
        for file in sorted(path.rglob("*")):
            if file.is_file():
                yield f"{top}/{file.relative_to(path).as_posix()}", file
    elif path.is_file():
        yield path.name, path
    else:
        raise SteptimeError(f"There is no file or folder {path}.")


def _take(files: list[tuple[str, Path]], store: Path, progress: Progress) -> Taken:
    from steptime import formats
    from steptime.store.imports import Imports

    taken, seen = Taken(), dict[str, str]()
    with Imports(store) as imports:
        for i, (name, path) in enumerate(files, 1):
            progress.show(f"{i} of {len(files)}: {name}")
            original = _original(name, path, taken)
            if original is None:
                continue
            if original.sha256 in seen:
                taken.again[name] = seen[original.sha256]
            elif formats.recognise(original):
                seen[original.sha256] = name
                _keep(original, imports, taken)
            else:
                taken.unknown.append(name)
    return taken


def _keep(original: Original, imports: Imports, taken: Taken) -> None:
    from steptime import formats

    reading = formats.read(original)
    taken.readings.append((original, reading))
    taken.changed += imports.keep(original.sha256, original.data, reading.runs)
    if reading.broken:
        taken.unreadable[original.name] = reading.broken


def _original(name: str, path: Path, taken: Taken) -> Original | None:
    from steptime.formats import MOST_BYTES, Original

    def beside(relative: str) -> bytes | None:
        neighbour = path.parent / relative
        try:
            small = neighbour.is_file() and neighbour.stat().st_size <= MOST_BYTES
            return neighbour.read_bytes() if small else None
        except (OSError, ValueError):
            return None

    try:
        if path.stat().st_size > MOST_BYTES:
            taken.unreadable[name] = f"larger than {MOST_BYTES >> 20} MiB"
            return None
        return Original(name, path.read_bytes(), path.resolve().as_posix(), beside=beside)
    except OSError as problem:
        taken.unreadable[name] = str(problem.strerror)
        return None


def _counts(readings: list[Reading]) -> dict[str, int]:
    runs = [run for reading in readings for run in reading.runs]
    return {
        "files": len(readings),
        "rows": len(runs),
        "failed": sum(bool(run.failure) for run in runs),
        "skipped": sum(len(reading.skipped) for reading in readings),
        "quarantined": sum(bool(run.quarantine) for run in runs),
    }


def _by_format(taken: Taken) -> dict[str, list[Reading]]:
    found: dict[str, list[Reading]] = {}
    for _, reading in taken.readings:
        found.setdefault(reading.source, []).append(reading)
    return dict(sorted(found.items()))


def _reasons(readings: list[Reading]) -> dict[str, Counter[str]]:
    """Grouped: what differs in numbers only is one reason."""
    runs = [run for reading in readings for run in reading.runs]
    skipped = [skipped.reason for reading in readings for skipped in reading.skipped]
    return {
        "failed": Counter(_general(run.failure) for run in runs if run.failure),
        "skipped": Counter(_general(reason) for reason in skipped),
        "quarantined": Counter(_general(run.quarantine) for run in runs if run.quarantine),
        "flagged": Counter(
            _general(defect) for run in runs if not run.quarantine for defect in run.defects
        ),
    }


def _general(reason: str) -> str:
    return re.sub(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?", "#", reason.split("\n")[0])[:120]


def _document(taken: Taken, *, rows: bool) -> dict[str, Any]:
    formats = {
        source: {
            **_counts(readings),
            "reasons": {name: dict(found) for name, found in _reasons(readings).items()},
        }
        for source, readings in _by_format(taken).items()
    }
    document = {
        "formats": formats,
        "total": _counts([reading for _, reading in taken.readings]),
        "changed": taken.changed,
        "again": taken.again,
        "unrecognised": taken.unknown,
        "unreadable": taken.unreadable,
    }
    return {**document, "rows": [_row_document(*row) for row in _rows(taken)]} if rows else document


def _rows(taken: Taken) -> Iterator[tuple[str, str, str, str]]:
    """File, place, what became of it, why."""
    for original, reading in taken.readings:
        for run in reading.runs:
            what = "failed" if run.failure else "quarantined" if run.quarantine else "taken"
            yield (
                original.name,
                run.place,
                what,
                run.failure or run.quarantine or "; ".join(run.defects),
            )
        for skipped in reading.skipped:
            yield original.name, skipped.place, "skipped", skipped.reason


def _row_document(file: str, place: str, what: str, why: str) -> dict[str, str]:
    return {"file": file, "place": place, "what": what, "why": why}


def _tell(taken: Taken, *, rows: bool) -> None:
    from steptime import formats

    if rows:
        for file, place, what, why in _rows(taken):
            output.say(f"{file}  {place}  {what}{': ' if why else ''}{' '.join(why.split())}")
    by_format = _by_format(taken)
    if by_format:
        lines = {formats.title(source): _counts(readings) for source, readings in by_format.items()}
        lines["total"] = _counts([reading for _, reading in taken.readings])
        heads = list(lines["total"])
        table = [[name, *(f"{counts[head]:,}" for head in heads)] for name, counts in lines.items()]
        output.table(["format", *heads], table, right=heads)
    for source, readings in by_format.items():
        for what, found in _reasons(readings).items():
            for reason, count in found.most_common():
                output.say(f"{what:>11}  {count:>6,}  {source}: {reason}")
    _tell_rest(taken, rows=rows)


def _tell_rest(taken: Taken, *, rows: bool) -> None:
    if taken.again:
        output.say(f"{len(taken.again)} files have the same content as another of them.")
    for name, why in taken.unreadable.items():
        output.warn(f"note: {name}: {why}")
    shown = taken.unknown if rows else taken.unknown[:MOST_NAMES]
    for name in shown:
        output.say(f"{name}: {UNKNOWN}")
    if len(shown) < len(taken.unknown):
        output.say(f"and {len(taken.unknown) - len(shown)} more: {UNKNOWN}; --rows names them.")
    if taken.readings and not taken.changed:
        output.say("Everything was in the store already: nothing changed.")
