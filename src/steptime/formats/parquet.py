"""Results as Parquet: a typed column for each name of the catalogue; the file's own metadata say the units."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from steptime.core.errors import NotInstalled
from steptime.formats import Found, Original, Skipped
from steptime.formats._writer import Page, columns, own_run, unit

TITLE = "Tables of results with units (Parquet)"
SCHEMA = "steptime-rows/1"


def recognises(name: str, head: bytes) -> bool:
    return head.startswith(b"PAR1")


def read(file: Original) -> Found:
    try:
        rows = _rows(file.content)
    except _duckdb().Error as problem:
        yield Skipped("file", f"not readable: {str(problem).partition(chr(10))[0][:200]}")
        return
    if rows is None:
        yield Skipped("file", f"Parquet, but not {SCHEMA}: its columns have no meaning here")
        return
    for place, row in enumerate(rows, 1):
        yield own_run(file, f"row {place}", row)


def _rows(data: bytes) -> list[dict[str, Any]] | None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        path.write_bytes(data)
        with _duckdb().connect() as database:
            kept = database.execute(
                "SELECT decode(key), decode(value) FROM parquet_kv_metadata(?)", [str(path)]
            ).fetchall()
            if dict(kept).get("schema") != SCHEMA:
                return None
            found = database.execute("SELECT * FROM read_parquet(?)", [str(path)])
            names = [column[0] for column in found.description]
            return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def write(rows: Sequence[dict[str, Any]]) -> Iterator[Page]:
    """Rates of all devices and of each are columns of their own, in the unit that the column `unit` names."""
    if not rows:
        return
    names = columns(rows)
    units = json.dumps({name: unit(name) for name in names if unit(name)})
    with TemporaryDirectory() as folder:
        lines, made = Path(folder) / "rows.json", Path(folder) / "rows.parquet"
        lines.write_text(
            "".join(json.dumps({name: row.get(name) for name in names}) + "\n" for row in rows)
        )
        types = ", ".join(f"'{name}': '{'DOUBLE' if unit(name) else 'VARCHAR'}'" for name in names)
        source = f"read_json(?, format = 'newline_delimited', columns = {{{types}}})"
        options = f"FORMAT parquet, COMPRESSION zstd, KV_METADATA {{schema: '{SCHEMA}', units: '{units}'}}"
        with _duckdb().connect() as database:
            database.execute(f"COPY (SELECT * FROM {source}) TO '{made}' ({options})", [str(lines)])
        yield Page("results.parquet", made.read_bytes(), tuple(row["id"] for row in rows))


@cache
def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise NotInstalled("Parquet files need DuckDB: pip install 'steptime[report]'") from None
    return duckdb
