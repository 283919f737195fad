"""The rows of the index in DuckDB, and their cells: adds and removes rows in both."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from math import isfinite
from tempfile import NamedTemporaryFile
from typing import Any, TypeVar

from steptime.core.errors import NotInstalled
from steptime.index.catalogue import DIMENSIONS, METRICS
from steptime.index.cells import cell_hash, select_cells
from steptime.index.imported import select_imported
from steptime.index.rows import COLUMNS, Row
from steptime.index.sql import CELL, quote, quote_list

# Below this number of rows, the rows themselves are quick enough.
CELLS_FROM = 250_000
# Rows for each cell, at the least: with fewer there is little to save.
REPEATS = 2
BATCH = 50_000
# Bytes, unless one is longer.
LONGEST_LINE = 1 << 24

Item = TypeVar("Item")
ImportedLine = tuple[str, bytes]  # where a line is kept, and the line


def _type_of(name: str) -> str:
    is_text = name in DIMENSIONS and not DIMENSIONS[name].number
    return "VARCHAR" if is_text else "DOUBLE"


TYPES = {name: _type_of(name) for name in COLUMNS}
TYPES |= {"id": "VARCHAR", "started": "VARCHAR", "place": "VARCHAR"}


class Table:
    """One writer at a time, and any number of readers.

    Each reader sees rows and cells of one state."""

    def __init__(self, path: str = ":memory:") -> None:
        self.database = duckdb().connect(path)
        columns = ", ".join(f"{quote(name)} {TYPES[name]}" for name in COLUMNS)
        self.database.execute(f"""
            CREATE TABLE IF NOT EXISTS runs (
                "id" VARCHAR, "started" VARCHAR, "place" VARCHAR, "cell" UBIGINT, {columns}
            )
        """)
        tables = self.database.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        self.has_cells = ("cells",) in tables

    def add(
        self, rows: Iterable[Row], *, instead_of: Sequence[str] = (), places: Sequence[str] = ()
    ) -> None:
        """Adds rows, replacing those of the same id.

        Removes the rows of the ids `instead_of`, and those kept in `places`."""
        removed_ids = list(instead_of)
        removed_places = list(places)
        for batch in _batches(rows, at_least_one=bool(removed_ids or removed_places)):
            self._stage(batch)
            self._replace(removed_ids, removed_places)
            removed_ids, removed_places = [], []

    def add_imported(self, lines: Iterable[ImportedLine], *, places: Sequence[str] = ()) -> bool:
        """Adds imported rows as a store keeps them, each with where it is kept.

        Removes the rows kept in `places`. Returns whether some lines were damaged and skipped."""
        is_damaged = False
        removed_places = list(places)
        for batch in _batches(lines, at_least_one=bool(removed_places)):
            is_damaged |= self._stage_imported(batch)
            self._replace([], removed_places)
            removed_places = []
        return is_damaged

    def count(self) -> int:
        return int(self._single("SELECT count(*) FROM runs"))

    def summarise(self) -> None:
        """Makes the table of cells if there are enough rows. Later changes keep it up to date."""
        if self.has_cells or self.count() < CELLS_FROM:
            return
        cells = self._single(f"SELECT count(*) FROM (SELECT DISTINCT {quote_list(CELL)} FROM runs)")
        if cells * REPEATS <= self.count():
            self.make_cells()

    def make_cells(self) -> None:
        counts = ", ".join(f"count({quote(name)})" for name in METRICS)
        (row,) = self.database.execute(f"SELECT {counts} FROM runs").fetchall()
        present = [name for name, count in zip(METRICS, row, strict=True) if count]
        self.database.execute(f"CREATE OR REPLACE TABLE cells AS {select_cells(present)}")
        self.has_cells = True

    def _single(self, text: str) -> Any:
        # Requests come from several threads, and a cursor belongs to one of them.
        return self.database.cursor().execute(text).fetchall()[0][0]

    def _stage(self, rows: list[Row]) -> None:
        types = ", ".join(f"'{name}': '{type_}'" for name, type_ in TYPES.items())
        unique = {row["id"]: row for row in rows}
        # Through a file, because single inserts are slow.
        with NamedTemporaryFile("w", suffix=".json") as file:
            file.writelines(_to_line(row) for row in unique.values())
            file.flush()
            self.database.execute(
                f"""
                CREATE OR REPLACE TEMP TABLE stage AS
                SELECT
                    "id", coalesce("started", '') AS started, "place",
                    {cell_hash()} AS cell, {quote_list(COLUMNS)}
                FROM read_json(?, format = 'newline_delimited', columns = {{{types}}})
                """,
                [file.name],
            )

    def _stage_imported(self, lines: list[ImportedLine]) -> bool:
        """DuckDB reads the lines itself, ten times as fast as they can be handed to it."""
        with NamedTemporaryFile("wb", suffix=".json") as file:
            for location, line in lines:
                kept_in = json.dumps(location).encode()
                file.write(b'{"kept_in":%b,%b\n' % (kept_in, line[1:]))
            file.flush()
            longest = max((len(line) for _, line in lines), default=0)
            # Room for where it is kept, which every line gets in front.
            limit = max(LONGEST_LINE, 2 * longest)
            text = f"CREATE OR REPLACE TEMP TABLE stage AS {select_imported()}"
            self.database.execute(text, [file.name, limit])
        staged = self.database.execute("SELECT count(*) FROM stage").fetchall()[0][0]
        return bool(staged < len(lines))

    def _replace(self, ids: list[str], places: list[str]) -> None:
        """Moves the stage into the table, in exchange for what it replaces: all or nothing."""
        self.database.execute("BEGIN")
        try:
            self._move_stage(ids, places)
            self.database.execute("COMMIT")
        except BaseException:
            self.database.execute("ROLLBACK")
            raise

    def _move_stage(self, ids: list[str], places: list[str]) -> None:
        replaced = """
            "id" IN (SELECT "id" FROM stage)
            OR "id" IN (SELECT unnest(?))
            OR "place" IN (SELECT unnest(?))
        """
        if self.has_cells:
            self.database.execute(
                f"""
                CREATE OR REPLACE TEMP TABLE touched AS
                SELECT "cell" FROM stage UNION SELECT "cell" FROM runs WHERE {replaced}
                """,
                [ids, places],
            )
        if self.count():
            self.database.execute(f"DELETE FROM runs WHERE {replaced}", [ids, places])
        self.database.execute("INSERT INTO runs SELECT * FROM stage")
        if self.has_cells:
            touched = '"cell" IN (SELECT "cell" FROM touched)'
            self.database.execute(f"DELETE FROM cells WHERE {touched}")
            self.database.execute(f"INSERT INTO cells {select_cells(METRICS, touched)}")


def _batches(items: Iterable[Item], *, at_least_one: bool) -> Iterator[list[Item]]:
    iterator = iter(items)
    batch = list(islice(iterator, BATCH))
    if at_least_one and not batch:
        yield []
    while batch:
        yield batch
        batch = list(islice(iterator, BATCH))


def _to_line(row: Row) -> str:
    """A row as a line of JSON, without what is absent."""
    fields: dict[str, str | float] = {}
    for name, value in row.items():
        type_ = TYPES.get(name)
        if value is None or type_ is None:
            continue
        if type_ == "VARCHAR":
            fields[name] = value if type(value) is str else str(value)
        elif (number := _to_number(value)) is not None:
            fields[name] = number
    return json.dumps(fields) + "\n"


def _to_number(value: Any) -> float | None:
    """Numbers of other tools may be text; what cannot be a number is absent."""
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
