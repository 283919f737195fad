"""Write results as files of other tools. Each file is read back to see what the format holds.

A writer takes rows by the catalogue's names, with the details of `_details.py` if known.
It yields files, and the rows that it had to skip, with the reason."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import isclose
from typing import Any, Protocol, cast

from steptime import formats as file_formats
from steptime import plugins
from steptime.analysis.device_peaks import find_device
from steptime.core.errors import SteptimeError, unknown
from steptime.core.foreign import ForeignRun
from steptime.formats import Format, Original, Skipped
from steptime.formats._details import COUNTS, DETAILS
from steptime.formats._parse import number
from steptime.index.catalogue import DIMENSIONS, METRICS
from steptime.index.rows import ENDS

Row = dict[str, Any]
# What the store says about a result; no format is expected to hold it.
OF_THE_STORE = ("id", "source", "session", "grade", "status", "plausible", *DETAILS[1:])
# What a row may hold beyond the catalogue.
BESIDE = ("more", "hardware")
# Names of processors, and the architectures that stand for a name.
PROCESSOR = re.compile(
    r"\b(xeon(?! ?phi)|epyc|ryzen|opteron|core +(i\d|ultra)|neoverse|graviton|power\d+|cpus?"
    r"|processor|x86 64|aarch64|arm)\b"
)
# Begins the names of values that a format has no name for.
PREFIX = "steptime."
# The unit of a dimension that is a number.
COUNT = "count"
# Relative: milliseconds and percent cost the last digit.
EQUAL = 1e-12


@dataclass(frozen=True)
class Page:
    """A file to write."""

    name: str
    data: bytes
    # The ids of its rows, one for each run that the reader finds in it, in that order.
    rows: tuple[str, ...] = ()


class WritableFormat(Format, Protocol):
    """A format that can also be written."""

    def write(self, rows: Sequence[Row]) -> Iterator[Page | Skipped]:
        """The files of these rows, and the rows that the format cannot hold."""


@dataclass(frozen=True)
class Writing:
    format: str
    pages: tuple[Page, ...]
    # How many rows.
    written: int
    # Rows that the format cannot hold at all.
    skipped: tuple[Skipped, ...]
    # By name: values that the format has no name for.
    absent: Counter[str] = field(default_factory=Counter)
    # By name: values that its readers take for others.
    changed: Counter[str] = field(default_factory=Counter)

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": self.format,
            "title": file_formats.title(self.format),
            "files": [page.name for page in self.pages],
            "rows": self.written,
            "skipped": [vars(skipped) for skipped in self.skipped],
            "absent": dict(self.absent),
            "changed": dict(self.changed),
        }


def writable_formats() -> list[str]:
    names = plugins.names("formats")
    return [name for name in names if hasattr(plugins.load("formats", name), "write")]


def write(name: str, rows: Sequence[Row]) -> Writing:
    names = writable_formats()
    if name not in names:
        raise unknown("format to write", name, names)
    writable = cast(WritableFormat, file_formats.load_format(name))
    pages = []
    skipped = []
    for item in writable.write(rows):
        if isinstance(item, Page):
            pages.append(item)
        else:
            skipped.append(item)
    rows_read = read_back(name, pages)
    writing = Writing(name, tuple(pages), len(rows_read), tuple(skipped))
    for row in rows:
        if row["id"] in rows_read:
            _count_differences(row, rows_read[row["id"]], writing)
    return writing


def read_back(name: str, pages: Iterable[Page]) -> dict[str, Row]:
    """What the format's reader finds in the files, by the id of the row that was written.

    Several runs of one row hold different values of it."""
    pages = tuple(pages)
    data = {page.name: page.data for page in pages}
    rows: dict[str, Row] = {}
    for page in pages:
        if not page.rows:
            continue
        neighbour = partial(_neighbour, data, page.name)
        file = Original(page.name, page.data, page.name, name, beside=neighbour)
        runs = file_formats.read(file).runs
        if len(runs) != len(page.rows):
            raise SteptimeError(
                f"{page.name} does not read back as {name}: {len(page.rows)} results are in it, "
                f"{len(runs)} were found. Nothing is written; choose another format."
            )
        for identifier, run in zip(page.rows, runs, strict=True):
            rows.setdefault(identifier, {}).update(_values(run))
    return rows


def _values(run: ForeignRun) -> Row:
    return {"started": run.started, **run.dimensions, **run.metrics, "failure": run.failure}


def _neighbour(data: dict[str, bytes], page: str, relative: str) -> bytes | None:
    names = page.split("/")[:-1]
    for name in relative.split("/"):
        if name == "..":
            names = names[:-1]
        else:
            names = [*names, name]
    return data.get("/".join(names))


def _count_differences(row: Row, row_read: Row, writing: Writing) -> None:
    for name, value in row.items():
        if name in (*OF_THE_STORE, *BESIDE) or value in (None, ""):
            continue
        value_read = row_read.get(name)
        if value_read in (None, ""):
            writing.absent[name] += 1
        # Readers reword the cause of a failure.
        elif name != "failure" and not _are_equal(value, value_read):
            writing.changed[name] += 1


def _are_equal(value: Any, other: Any) -> bool:
    if isinstance(value, int | float) and isinstance(other, int | float):
        return isclose(value, other, rel_tol=EQUAL)
    return str(value) == str(other)


def has_accelerators(row: Row) -> bool:
    """Of an imported row only the name of its device is known."""
    if "hardware" in row:
        return bool(row["hardware"]["accelerators"])
    name = re.sub(r"\([^)]*\)|_", " ", str(row.get("device") or "").lower())
    return find_device(name) is not None or PROCESSOR.search(name) is None


def is_number(name: str) -> bool:
    return name not in DIMENSIONS or DIMENSIONS[name].number


def columns() -> list[str]:
    """The columns of our own tables: the same for all results, so that a script can rely on them.

    A new one is a new version of the schema."""
    metrics = [f"{name}{end}" for name in METRICS for end in ENDS]
    return ["id", "started", *DIMENSIONS, *metrics, *DETAILS]


def unit(name: str) -> str:
    """The unit of a column; empty if it holds texts.

    The unit of a rate says whether it is that of one device or of all."""
    metric = METRICS.get(name.removesuffix("_low").removesuffix("_high"))
    if metric is None:
        is_count = name in COUNTS or (name in DIMENSIONS and is_number(name))
        return COUNT if is_count else ""
    if metric.unit != "units/s":
        return metric.unit or "1"
    if metric.name.endswith("_per_device"):
        return f"{metric.unit} per device"
    return f"{metric.unit} of all devices"


def row_from_table(file: Original, location: str, cells: Row) -> ForeignRun:
    """A row of one of our own tables. The id it had there is kept in `more`."""
    dimensions = {}
    for name in DIMENSIONS:
        if name not in OF_THE_STORE:
            dimensions[name] = cells.get(name)
    dimensions["session"] = cells.get("session")
    dimensions["grade"] = cells.get("grade")
    metrics = {}
    for name, cell in cells.items():
        if unit(name) and name not in (*DIMENSIONS, *COUNTS):
            metrics[name] = cell
    status = cells.get("status") or ""
    failure = cells.get("failure") or ("" if status == "ok" else status)
    quarantine = ""
    if cells.get("plausible") == "no":
        quarantine = cells.get("quarantine") or "its table says that it cannot be true"
    more = {name: cells.get(name) for name in ("id", "source", *DETAILS)}
    warnings = cells.get("warnings")
    return file.run(
        location,
        dimensions,
        metrics,
        started=cells.get("started") or "",
        failure=failure,
        quarantine=quarantine,
        more=more,
        defects=[warnings] if warnings else [],
    )


def extra_values(row: Row, held: Iterable[str]) -> dict[str, Any]:
    """What a format has no name for, under names that no other tool uses."""
    other_names = {*held, *OF_THE_STORE, "started", "failure"}
    extras = {}
    for name in columns():
        if name not in other_names and row.get(name) not in (None, ""):
            extras[f"{PREFIX}{name}"] = row[name]
    return extras


def read_extras(values: dict[str, Any]) -> tuple[Row, Row]:
    """The dimensions and metrics among them; a format may have made texts of numbers."""
    dimensions = {}
    metrics = {}
    for key, value in values.items():
        if not key.startswith(PREFIX):
            continue
        name = key.removeprefix(PREFIX)
        parsed = number(value) if is_number(name) else value
        if name in DIMENSIONS:
            dimensions[name] = parsed
        elif unit(name):
            metrics[name] = parsed
    return dimensions, metrics
