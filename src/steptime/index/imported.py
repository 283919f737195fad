"""The SQL that reads imported rows from a file of JSON lines, as a store keeps them."""

from __future__ import annotations

from collections.abc import Iterable

from steptime.index.catalogue import DIMENSIONS
from steptime.index.cells import cell_hash
from steptime.index.rows import COLUMNS
from steptime.index.sql import quote, quote_list

METRIC_COLUMNS = tuple(name for name in COLUMNS if name not in DIMENSIONS)
# Dimensions that a line does not have under its dimensions.
DERIVED = {
    "source": '"source"',
    "status": "CASE WHEN coalesce(failure, '') = '' THEN 'ok' ELSE 'failed' END",
    "plausible": "CASE WHEN coalesce(quarantine, '') = '' THEN 'yes' ELSE 'no' END",
}
PLAIN_FIELDS = ("id", "kept_in", "started", "source", "failure", "quarantine")


def select_imported() -> str:
    """Rows of a file, which the first bound value names; the second is its longest line in bytes.

    Fields that the catalogue does not name stay in the file, and so does text that should be a
    number."""
    values = [_dimension_value(name) for name in DIMENSIONS]
    values += [_number(f"metrics.{quote(name)}", name) for name in METRIC_COLUMNS]
    return f"""
        SELECT "id", "started", "place", {cell_hash()} AS cell, {quote_list(COLUMNS)}
        FROM (
            SELECT DISTINCT ON ("id")
                "id", coalesce("started", '') AS started, kept_in AS place, {", ".join(values)}
            FROM read_json(
                ?,
                format = 'newline_delimited',
                ignore_errors = TRUE,
                columns = {_line_type()},
                maximum_object_size = ?
            )
            WHERE "id" IS NOT NULL AND kept_in IS NOT NULL
        )
    """


def _line_type() -> str:
    """The type of a line for DuckDB. Numbers are read as text, because some are none."""
    types = dict.fromkeys(PLAIN_FIELDS, "VARCHAR")
    types["dimensions"] = _struct_of_text(DIMENSIONS)
    types["metrics"] = _struct_of_text(METRIC_COLUMNS)
    fields = ", ".join(f"'{name}': '{type_}'" for name, type_ in types.items())
    return f"{{{fields}}}"


def _struct_of_text(names: Iterable[str]) -> str:
    fields = ", ".join(f"{quote(name)} VARCHAR" for name in names)
    return f"STRUCT({fields})"


def _dimension_value(name: str) -> str:
    if name in DERIVED:
        return f"{DERIVED[name]} AS {quote(name)}"
    field = f"dimensions.{quote(name)}"
    if DIMENSIONS[name].number:
        return _number(field, name)
    return f"{field} AS {quote(name)}"


def _number(field: str, name: str) -> str:
    number = f"TRY_CAST({field} AS DOUBLE)"
    return f"CASE WHEN isfinite({number}) THEN {number} END AS {quote(name)}"
