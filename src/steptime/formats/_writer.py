"""Results as other tools' files. What a format holds is not claimed but seen: each file is read back by its reader.

A writer is a function `write(rows)` beside a reader's `read`. It takes rows by the catalogue's names, with `failure`
and `more` where they are known, and yields files and the rows that it had to skip, with the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import isclose
from typing import Any

from steptime import formats as file_formats
from steptime import plugins
from steptime.core.errors import unknown
from steptime.core.foreign import ForeignRun
from steptime.formats import Original, Skipped
from steptime.formats._parse import number
from steptime.index.catalogue import DIMENSIONS, METRICS

Row = dict[str, Any]
OF_THE_STORE = ("id", "source", "session", "grade", "status", "plausible")
"""What is said about a result here, and no part of it: no format is expected to hold it."""
OWN, COUNT = "steptime.", "count"
EQUAL = 1e-12  # relative: milliseconds and percent cost the last digit


@dataclass(frozen=True)
class Page:
    """A file to write. `rows` are the ids of its rows: one for each run that the reader finds in it, in that order."""

    name: str
    data: bytes
    rows: tuple[str, ...] = ()


@dataclass(frozen=True)
class Writing:
    format: str
    pages: tuple[Page, ...]
    written: int  # rows
    skipped: tuple[Skipped, ...]  # rows that the format cannot hold at all
    absent: Counter[str] = field(
        default_factory=Counter
    )  # by name: values that the format has no place for
    changed: Counter[str] = field(
        default_factory=Counter
    )  # by name: values that its readers take for others

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": self.format,
            "title": file_formats.title(self.format),
            "files": [page.name for page in self.pages],
            "rows": self.written,
            "skipped": [vars(one) for one in self.skipped],
            "absent": dict(self.absent),
            "changed": dict(self.changed),
        }


def formats() -> list[str]:
    return [
        name for name in plugins.names("formats") if hasattr(plugins.load("formats", name), "write")
    ]


def write(name: str, rows: Sequence[Row]) -> Writing:
    if name not in (known := formats()):
        raise unknown("format to write", name, known)
    made = list(plugins.load("formats", name).write(rows))
    pages = tuple(one for one in made if isinstance(one, Page))
    skipped = tuple(one for one in made if isinstance(one, Skipped))
    found = read_back(name, pages)
    absent, changed = Counter[str](), Counter[str]()
    for row in rows:
        if row["id"] in found:
            _hold_against(row, found[row["id"]], absent, changed)
    return Writing(name, pages, len(found), skipped, absent, changed)


def read_back(name: str, pages: Iterable[Page]) -> dict[str, Row]:
    """By the id of the row that was written; several runs of one row tell different parts of it."""
    pages = tuple(pages)
    data = {page.name: page.data for page in pages}
    found: dict[str, Row] = {}
    for page in pages:
        if page.rows:
            file = Original(
                page.name, page.data, page.name, name, beside=partial(_neighbour, data, page.name)
            )
            runs = file_formats.read(file).runs
            assert len(runs) == len(page.rows), (
                f"{page.name}: {len(page.rows)} written, {len(runs)} read back"
            )
            for identifier, run in zip(page.rows, runs, strict=True):
                found.setdefault(identifier, {}).update(_told(run))
    return found


def _told(run: ForeignRun) -> Row:
    return {"started": run.started, **run.dimensions, **run.metrics, "failure": run.failure}


def _neighbour(data: dict[str, bytes], at: str, to: str) -> bytes | None:
    parts = at.split("/")[:-1]
    for word in to.split("/"):
        parts = parts[:-1] if word == ".." else [*parts, word]
    return data.get("/".join(parts))


def _hold_against(row: Row, found: Row, absent: Counter[str], changed: Counter[str]) -> None:
    for name, value in row.items():
        if name in OF_THE_STORE or name == "more" or value in (None, ""):
            continue
        other = found.get(name)
        if other in (None, ""):
            absent[name] += 1
        elif name != "failure" and not _equal(
            value, other
        ):  # readers put a cause into words of their own
            changed[name] += 1


def _equal(value: Any, other: Any) -> bool:
    numbers = isinstance(value, int | float) and isinstance(other, int | float)
    return isclose(value, other, rel_tol=EQUAL) if numbers else str(value) == str(other)


def is_number(name: str) -> bool:
    return name not in DIMENSIONS or DIMENSIONS[name].number


def columns(rows: Iterable[Row]) -> list[str]:
    """Names that any row has a value for, in the catalogue's order."""
    there = {name for row in rows for name, value in row.items() if value not in (None, "")}
    ends = [f"{name}{end}" for name in METRICS for end in ("", "_low", "_high")]
    return [name for name in ("id", "started", *DIMENSIONS, *ends, "failure") if name in there]


def unit(name: str) -> str:
    """Of a column; dimensions that are numbers count something. A rate says whether it is of one device or of all."""
    metric = METRICS.get(name.removesuffix("_low").removesuffix("_high"))
    if metric is None:
        return COUNT if name in DIMENSIONS and is_number(name) else ""
    scope = (
        ""
        if metric.unit != "units/s"
        else " per device"
        if metric.name.endswith("_per_device")
        else " of all devices"
    )
    return (metric.unit or "1") + scope


def own_run(file: Original, place: str, cells: Row) -> ForeignRun:
    """A row by the catalogue's names, as our own tables hold it. Whose id it was there is kept beside."""
    about, there = (
        {name: cells.get(name) or "" for name in OF_THE_STORE},
        {n: v for n, v in cells.items() if unit(n)},
    )
    words = {
        name: cells.get(name)
        for name in DIMENSIONS
        if name not in there and name not in OF_THE_STORE
    }
    return file.run(
        place,
        {
            **words,
            **{n: v for n, v in there.items() if n in DIMENSIONS},
            **{n: about[n] for n in ("session", "grade")},
        },
        {name: value for name, value in there.items() if name not in DIMENSIONS},
        started=cells.get("started") or "",
        failure=cells.get("failure") or ("" if about["status"] == "ok" else about["status"]),
        quarantine="its table says that it cannot be true" if about["plausible"] == "no" else "",
        more={name: about[name] for name in ("id", "source")},
    )


def extras(row: Row, held: Iterable[str]) -> dict[str, Any]:
    """What a format has no word of its own for, under names that no other tool uses."""
    left = [
        name for name in columns([row]) if name not in (*held, *OF_THE_STORE, "started", "failure")
    ]
    return {f"{OWN}{name}": row[name] for name in left}


def extra(values: dict[str, Any]) -> tuple[Row, Row]:
    """The same as dimensions and metrics; a format may have made texts of numbers."""
    own = {name.removeprefix(OWN): value for name, value in values.items() if name.startswith(OWN)}
    numbers = {name: number(value) for name, value in own.items() if is_number(name)}
    dimensions = {
        name: numbers.get(name, value) for name, value in own.items() if name in DIMENSIONS
    }
    return dimensions, {
        name: value for name, value in numbers.items() if name not in DIMENSIONS and unit(name)
    }
