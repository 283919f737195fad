"""The index's rows in DuckDB, and their cells: takes rows in and out, and keeps both in step. Asks nothing of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import islice
from math import isfinite
from tempfile import NamedTemporaryFile
from typing import Any

from steptime.core.errors import NotInstalled
from steptime.index import sql
from steptime.index.catalogue import DIMENSIONS, METRICS
from steptime.index.rows import COLUMNS, Row

CELLS_FROM = 250_000  # rows; below it the rows themselves are quick enough
REPEATS = 2  # rows for each cell, at the least: with fewer there is little to save
BATCH = 50_000
LONGEST_LINE = 1 << 24  # bytes, unless one is longer
TYPES = {
    name: "VARCHAR" if name in DIMENSIONS and not DIMENSIONS[name].number else "DOUBLE"
    for name in COLUMNS
} | dict.fromkeys(("id", "started", "place"), "VARCHAR")


class Table:
    """One writer at a time; any number of readers, each of which sees rows and cells of one state."""

    def __init__(self, path: str = ":memory:") -> None:
        self.database = duckdb().connect(path)
        columns = ", ".join(f"{sql.quoted(name)} {TYPES[name]}" for name in COLUMNS)
        own = '"id" VARCHAR, "started" VARCHAR, "place" VARCHAR, "cell" UBIGINT'
        self.database.execute(f"CREATE TABLE IF NOT EXISTS runs ({own}, {columns})")
        tables = self.database.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        self.has_cells = ("cells",) in tables

    def add(
        self, rows: Iterable[Row], *, instead_of: Sequence[str] = (), places: Sequence[str] = ()
    ) -> None:
        """A row that is there already is replaced. `instead_of`: ids, and `places`: origins, whose rows go."""
        some = iter(rows)
        batch = list(islice(some, BATCH))
        while batch or instead_of or places:
            self._stage(batch)
            self._exchange(list(instead_of), list(places))
            batch, instead_of, places = list(islice(some, BATCH)), (), ()

    def add_foreign(
        self, lines: Iterable[tuple[str, bytes]], *, places: Sequence[str] = ()
    ) -> bool:
        """Imported rows as they are kept, each with its place. Whether some were damaged: these are passed over."""
        some, damaged = iter(lines), False
        batch = list(islice(some, BATCH))
        while batch or places:
            damaged |= self._stage_foreign(batch)
            self._exchange([], list(places))
            batch, places = list(islice(some, BATCH)), ()
        return damaged

    def count(self) -> int:
        return int(self.database.cursor().execute("SELECT count(*) FROM runs").fetchall()[0][0])

    def summarise(self) -> None:
        """The table of cells, where there are so many rows that it pays. Later changes keep it up to date."""
        if not self.has_cells and self.count() >= CELLS_FROM:
            names = ", ".join(sql.quoted(name) for name in sql.CELL)
            cells = self.database.execute(
                f"SELECT count(*) FROM (SELECT DISTINCT {names} FROM runs)"
            ).fetchall()[0][0]
            if cells * REPEATS <= self.count():
                self.make_cells()

    def make_cells(self) -> None:
        counts = ", ".join(f"count({sql.quoted(name)})" for name in METRICS)
        (found,) = self.database.execute(f"SELECT {counts} FROM runs").fetchall()
        told = [name for name, count in zip(METRICS, found, strict=True) if count]
        self.database.execute(f"CREATE OR REPLACE TABLE cells AS {sql.cells_of(told)}")
        self.has_cells = True

    def _stage(self, rows: list[Row]) -> None:
        types = "{" + ", ".join(f"'{name}': '{kind}'" for name, kind in TYPES.items()) + "}"
        columns = ", ".join(sql.quoted(name) for name in COLUMNS)
        with NamedTemporaryFile(
            "w", suffix=".json"
        ) as file:  # one file, because single inserts are slow
            file.writelines(_line(row) for row in {row["id"]: row for row in rows}.values())
            file.flush()
            source = f"read_json(?, format = 'newline_delimited', columns = {types})"
            text = f'SELECT "id", coalesce("started", \'\') AS started, "place", {sql.cell()} AS cell, {columns}'
            self.database.execute(
                f"CREATE OR REPLACE TEMP TABLE stage AS {text} FROM {source}", [file.name]
            )

    def _stage_foreign(self, lines: list[tuple[str, bytes]]) -> bool:
        """DuckDB reads them itself, ten times as fast as they can be handed to it."""
        with NamedTemporaryFile("wb", suffix=".json") as file:
            file.writelines(
                b'{"kept_in":%b,%b\n' % (json.dumps(place).encode(), line[1:])
                for place, line in lines
            )
            file.flush()
            longest = max((len(line) for _, line in lines), default=0)
            bounds = [file.name, max(LONGEST_LINE, 2 * longest)]
            self.database.execute(f"CREATE OR REPLACE TEMP TABLE stage AS {sql.foreign()}", bounds)
        (count,) = self.database.execute("SELECT count(*) FROM stage").fetchall()[0]
        return bool(count < len(lines))

    def _exchange(self, ids: list[str], places: list[str]) -> None:
        """What is staged for what it replaces, all or nothing."""
        out = '"id" IN (SELECT "id" FROM stage) OR "id" IN (SELECT unnest(?)) OR "place" IN (SELECT unnest(?))'
        changed = f'SELECT "cell" FROM stage UNION SELECT "cell" FROM runs WHERE {out}'
        touched = '"cell" IN (SELECT "cell" FROM touched)'
        self.database.execute("BEGIN")
        try:
            if self.has_cells:
                self.database.execute(
                    f"CREATE OR REPLACE TEMP TABLE touched AS {changed}", [ids, places]
                )
            if self.count():
                self.database.execute(f"DELETE FROM runs WHERE {out}", [ids, places])
            self.database.execute("INSERT INTO runs SELECT * FROM stage")
            if self.has_cells:
                self.database.execute(f"DELETE FROM cells WHERE {touched}")
                self.database.execute(f"INSERT INTO cells {sql.cells_of(METRICS, touched)}")
            self.database.execute("COMMIT")
        except BaseException:
            self.database.execute("ROLLBACK")
            raise


def _line(row: Row) -> str:
    """What is absent is not written."""
    found: dict[str, str | float] = {}
    for name, value in row.items():
        kind = TYPES.get(name)
        if value is None or kind is None:
            continue
        if kind == "VARCHAR":
            found[name] = value if type(value) is str else str(value)
        elif (number := _number(value)) is not None:
            found[name] = number
    return json.dumps(found) + "\n"


def _number(value: Any) -> float | None:
    """Foreign numbers may be text; what cannot be one is absent."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if isfinite(number) else None


def duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise NotInstalled(
            "This command needs the report extra: pip install 'steptime[report]'"
        ) from None
    return duckdb
