"""Results as Parquet: a typed column per name of the catalogue; the metadata hold the units."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from steptime.core.errors import NotInstalled
from steptime.formats import Original, Rows, Skipped
from steptime.formats._writer import Page, columns, row_from_table, unit

TITLE = "Tables of results with units (Parquet)"
# In the file's metadata, so that other Parquet files are not mistaken for ours.
SCHEMA = "steptime-rows/2"
# The first version had only the columns that some row had a value for.
READABLE = ("steptime-rows/1", SCHEMA)
METADATA = "SELECT decode(key), decode(value) FROM parquet_kv_metadata(?)"


def recognises(name: str, head: bytes) -> bool:
    return head.startswith(b"PAR1")


def read(file: Original) -> Rows:
    try:
        rows = _read_rows(file.content)
    except _duckdb().Error as problem:
        first_line = str(problem).partition("\n")[0]
        yield Skipped("file", f"not readable: {first_line[:200]}")
        return
    if rows is None:
        yield Skipped("file", f"Parquet, but not {SCHEMA}: its columns have no meaning here")
        return
    for number, row in enumerate(rows, 1):
        yield row_from_table(file, f"row {number}", row)


def _read_rows(data: bytes) -> list[dict[str, Any]] | None:
    """None: the file is of another schema."""
    with TemporaryDirectory() as folder, _duckdb().connect() as database:
        path = Path(folder) / "rows.parquet"
        path.write_bytes(data)
        metadata = dict(database.execute(METADATA, [str(path)]).fetchall())
        if metadata.get("schema") not in READABLE:
            return None
        answer = database.execute("SELECT * FROM read_parquet(?)", [str(path)])
        names = [column[0] for column in answer.description]
        return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


def write(rows: Sequence[dict[str, Any]]) -> Iterator[Page]:
    """Rates of all devices and of each are columns of their own, in the unit of column `unit`."""
    if not rows:
        return
    names = columns()
    with TemporaryDirectory() as folder, _duckdb().connect() as database:
        source = Path(folder) / "rows.json"
        target = Path(folder) / "rows.parquet"
        with source.open("w") as file:
            for row in rows:
                file.write(json.dumps({name: row.get(name) for name in names}) + "\n")
        database.execute(_copy_query(names, target), [str(source)])
        ids = tuple(row["id"] for row in rows)
        yield Page("results.parquet", target.read_bytes(), ids)


def _copy_query(names: Sequence[str], target: Path) -> str:
    units = json.dumps({name: unit(name) for name in names if unit(name)})
    types = []
    for name in names:
        kind = "DOUBLE" if unit(name) else "VARCHAR"
        types.append(f"'{name}': '{kind}'")
    return f"""
        COPY (SELECT * FROM read_json(
            ?, format = 'newline_delimited', columns = {{{", ".join(types)}}}
        ))
        TO '{target}' (
            FORMAT parquet, COMPRESSION zstd,
            KV_METADATA {{schema: '{SCHEMA}', units: '{units}'}}
        )
    """


@cache
def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise NotInstalled("Parquet files need DuckDB: pip install 'steptime[report]'") from None
    return duckdb
