"""Results of other tools: find the reader of a file and read it into rows. Stores nothing.

Each format is one file of this folder, see `Format`. A file that can also be written has
`write(rows)`, see `WritableFormat` in `_writer.py`. Files that begin with an underscore are
shared by several formats."""

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
from typing import Any, Protocol, TypedDict, Unpack, cast

from steptime import plugins
from steptime.analysis.plausibility import judge_runs
from steptime.core.errors import SteptimeError
from steptime.core.foreign import ForeignRun

HEAD_BYTES = 65_536
# Of one file, also after it is unpacked.
MOST_BYTES = 256 << 20
# Of what is unpacked to what was packed: logs and tables stay far below it.
MOST_RATIO = 200
FEWEST_UNPACKED = 16 << 20
# Letters of a dimension.
LONGEST = 300


@dataclass(frozen=True)
class Skipped:
    """A row that is no result, or that cannot be understood."""

    location: str
    reason: str


Row = ForeignRun | Skipped
Rows = Iterator[Row]


def _no_neighbour(relative: str) -> bytes | None:
    return None


class RunTexts(TypedDict, total=False):
    """Fields of a run that most rows do not have."""

    started: str
    failure: str
    quarantine: str


@dataclass(frozen=True)
class Original:
    """A file as the user gave it.

    `path` is its full path, because archives encode the configuration in folder names; only
    `name` is stored. `beside` returns the bytes of a neighbour by its path from this folder."""

    name: str
    data: bytes
    path: str = ""
    source: str = ""
    beside: Callable[[str], bytes | None] = field(default=_no_neighbour, repr=False)

    @cached_property
    def sha256(self) -> str:
        return sha256(self.data).hexdigest()

    @cached_property
    def content(self) -> bytes:
        return _unpack(self.data)

    @property
    def head(self) -> bytes:
        return self.content[:HEAD_BYTES]

    @cached_property
    def text(self) -> str:
        return decode_text(self.content)

    @property
    def folders(self) -> PurePosixPath:
        return PurePosixPath(self.path or self.name)

    def neighbour(self, relative: str) -> Original | None:
        data = self.beside(relative)
        if data is None:
            return None
        return Original(relative, data, str(self.folders.parent / relative))

    def run(
        self,
        location: str,
        dimensions: dict[str, Any],
        metrics: dict[str, float | None],
        *,
        more: dict[str, Any] | None = None,
        defects: Iterable[str] = (),
        **texts: Unpack[RunTexts],
    ) -> ForeignRun:
        """One row of this file. Empty values, and numbers that are not finite, are left out."""
        numbers = {}
        for name, value in metrics.items():
            if value is not None and isfinite(value):
                numbers[name] = float(value)
        short = {name: _shorten(value) for name, value in _present(dimensions).items()}
        others = {name: _to_json(value) for name, value in _present(more or {}).items()}
        return ForeignRun(
            source=self.source,
            original=self.sha256,
            file=_to_json(self.name),
            location=_to_json(location),
            dimensions=short,
            metrics=numbers,
            more=others,
            defects=tuple(_to_json(defect) for defect in defects),
            started=_to_json(texts.get("started", "")),
            failure=_to_json(texts.get("failure", "")),
            quarantine=_to_json(texts.get("quarantine", "")),
        )


class Format(Protocol):
    """What the file of a format provides."""

    @property
    def TITLE(self) -> str:
        """Shown to people."""

    def recognises(self, name: str, head: bytes) -> bool:
        """Whether a file of this name, with these first bytes, is of this format."""

    def read(self, file: Original) -> Rows:
        """The runs in the file, and what had to be skipped, with the reason."""


@dataclass(frozen=True)
class Reading:
    source: str
    runs: tuple[ForeignRun, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    # Why the reader did not reach the end of the file.
    broken: str = ""


def recognise(file: Original) -> str:
    """The name of the format of this file; empty if none recognises it."""
    head = file.head
    for name in _names():
        if load_format(name).recognises(file.name, head):
            return name
    return ""


def read(file: Original) -> Reading:
    """All rows, checked for plausibility.

    A file from outside may hold anything: if its reader fails, the rows so far are kept."""
    file = replace(file, source=file.source or recognise(file))
    runs: list[ForeignRun] = []
    skipped: list[Skipped] = []
    broken = ""
    try:
        for row in load_format(file.source).read(file):
            if isinstance(row, Skipped):
                skipped.append(row)
            else:
                runs.append(row)
    except Exception as problem:
        broken = f"the reader {file.source} stopped: {type(problem).__name__}: {problem}"
    judged = judge_runs(_number_duplicates(runs))
    return Reading(file.source, tuple(judged), tuple(skipped), broken)


def title(source: str) -> str:
    return load_format(source).TITLE


def decode_text(data: bytes) -> str:
    """Decode leniently and drop a byte order mark."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", errors="replace").lstrip("\ufeff")
    return data.decode("utf-8-sig", errors="replace")


# Cached, because every file asks for it.
@cache
def _names() -> list[str]:
    return plugins.names("formats")


@cache
def load_format(name: str) -> Format:
    return cast(Format, plugins.load("formats", name))


def _unpack(data: bytes) -> bytes:
    """Decompress a gzip file; damaged ones stay as they are."""
    if data[:2] != b"\x1f\x8b":
        return data
    most = min(MOST_BYTES, max(FEWEST_UNPACKED, MOST_RATIO * len(data)))
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            content = file.read(most + 1)
    except (OSError, EOFError, zlib.error):
        return data
    if len(content) > most:
        raise SteptimeError(f"it unpacks to more than {most >> 20} MiB: unpack and split it")
    return content


def _present(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None and value != ""}


def _shorten(value: Any) -> Any:
    """A dimension is a number or a short text."""
    if isinstance(value, int | float):
        return value
    return _to_json(str(value))[:LONGEST]


def _to_json(value: Any) -> Any:
    """What JSON and UTF-8 can hold: no infinity, no half of a surrogate pair."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {_to_json(str(name)): _to_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json(item) for item in value]
    if isinstance(value, float) and not isfinite(value):
        return None
    return value


def _number_duplicates(runs: Iterable[ForeignRun]) -> Iterator[ForeignRun]:
    """A location names one row of its file, so a repeated one gets a number."""
    counts: Counter[str] = Counter()
    for run in runs:
        counts[run.location] += 1
        count = counts[run.location]
        if count == 1:
            yield run
        else:
            yield replace(run, location=f"{run.location} ({count})")
