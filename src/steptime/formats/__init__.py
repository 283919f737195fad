"""Everybody else's results: finds the reader that knows a file and reads it into rows. Keeps nothing.

A reader is one file of this shelf: TITLE, `recognises(name, head)` and `read(file)`, which yields runs and what it had
to skip, with the reason. A file that has `write(rows)` beside it writes the format, too: see `_writing.py`. Files that
begin with an underscore are read by readers, and none themselves."""

from __future__ import annotations

import gzip
import io
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from hashlib import sha256
from math import isfinite
from pathlib import PurePosixPath
from typing import Any

from steptime import plugins
from steptime.analysis.plausibility import judge_runs
from steptime.core.foreign import ForeignRun

HEAD_BYTES = 65_536
MOST_BYTES = 256 << 20  # of one file, also when it is unpacked
LONGEST = 300  # letters of a dimension


@dataclass(frozen=True)
class Skipped:
    """A row that is no result, or that cannot be understood."""

    location: str
    reason: str


Row = ForeignRun | Skipped
Found = Iterator[Row]


def _nobody(relative: str) -> bytes | None:
    return None


@dataclass(frozen=True)
class Original:
    """A file as it was given. `path` is its whole path where archives say the configuration in folder names; only
    `name` is kept. `beside` gives the bytes of a neighbour, by its path from this file's folder."""

    name: str
    data: bytes
    path: str = ""
    source: str = ""
    beside: Callable[[str], bytes | None] = field(default=_nobody, repr=False)

    @cached_property
    def sha256(self) -> str:
        return sha256(self.data).hexdigest()

    @cached_property
    def content(self) -> bytes:
        return _unpacked(self.data)

    @property
    def head(self) -> bytes:
        return self.content[:HEAD_BYTES]

    @cached_property
    def text(self) -> str:
        return decoded(self.content)

    @property
    def folders(self) -> PurePosixPath:
        return PurePosixPath(self.path or self.name)

    def neighbour(self, relative: str) -> Original | None:
        data = self.beside(relative)
        return (
            None if data is None else Original(relative, data, str(self.folders.parent / relative))
        )

    def run(
        self, place: str, dimensions: dict[str, Any], metrics: dict[str, float | None], **rest: Any
    ) -> ForeignRun:
        """Nothing, and what is no number, is left out."""
        numbers = {
            name: float(value)
            for name, value in metrics.items()
            if value is not None and isfinite(value)
        }
        more = rest.pop("more", {})
        texts = {name: _plain(value) for name, value in rest.items()}
        return ForeignRun(
            source=self.source,
            original=self.sha256,
            file=_plain(self.name),
            location=_plain(place),
            dimensions={
                name: _short(value)
                for name, value in dimensions.items()
                if value is not None and value != ""
            },
            metrics=numbers,
            more={
                name: _plain(value)
                for name, value in more.items()
                if value is not None and value != ""
            },
            **{**texts, "defects": tuple(texts.get("defects", ()))},
        )


@dataclass(frozen=True)
class Reading:
    source: str
    runs: tuple[ForeignRun, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    broken: str = ""  # the reader did not get to the end


def recognise(file: Original) -> str:
    """The name of the reader that knows this file, or nothing."""
    head = file.head
    return next((name for name in _names() if _reader(name).recognises(file.name, head)), "")


def read(file: Original) -> Reading:
    """All rows, judged. A file from outside may be anything: a reader that fails over it keeps what it has read."""
    file = replace(file, source=file.source or recognise(file))
    runs: list[ForeignRun] = []
    skipped: list[Skipped] = []
    broken = ""
    try:
        for found in _reader(file.source).read(file):
            skipped.append(found) if isinstance(found, Skipped) else runs.append(found)
    except Exception as problem:
        broken = f"the reader {file.source} stopped: {type(problem).__name__}: {problem}"
    return Reading(file.source, tuple(judge_runs(list(_apart(runs)))), tuple(skipped), broken)


def title(source: str) -> str:
    return str(_reader(source).TITLE)


def decoded(data: bytes) -> str:
    """Leniently: a byte that is no text becomes a replacement character; a byte order mark is dropped."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", errors="replace").lstrip("\ufeff")
    return data.decode("utf-8-sig", errors="replace")


@cache  # asked for each file
def _names() -> list[str]:
    return plugins.names("formats")


@cache
def _reader(name: str) -> Any:
    return plugins.load("formats", name)


def _unpacked(data: bytes) -> bytes:
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            return file.read(MOST_BYTES)
    except (OSError, EOFError, zlib.error):
        return data


def _short(value: Any) -> Any:
    """A dimension is a number or a word, not a text of any length."""
    return value if isinstance(value, int | float) else _plain(str(value))[:LONGEST]


def _plain(value: Any) -> Any:
    """What JSON and UTF-8 can hold: no infinity, no half of a surrogate pair."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {_plain(str(name)): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def _apart(runs: Iterable[ForeignRun]) -> Iterator[ForeignRun]:
    """A place names one row of its file; of two with the same name the later gets a number."""
    seen: Counter[str] = Counter()
    for run in runs:
        seen[run.location] += 1
        yield (
            run
            if seen[run.location] == 1
            else replace(run, location=f"{run.location} ({seen[run.location]})")
        )
