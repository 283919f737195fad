"""The version of what is stored, and the one answer to a store of another version."""

from __future__ import annotations

from steptime.core.errors import SteptimeError

# Of a folder and of a database. It is raised together with the schemas of their contents.
FORMAT = 2
JOURNAL_SCHEMA = "steptime/2"
PART_SCHEMA = "steptime-part/2"


def check_format(store: str, store_format: int, conversion: str) -> None:
    """Raise unless the format is the current one; `conversion` says how to raise an older one."""
    if store_format < FORMAT:
        raise SteptimeError(
            f"{store} has format {store_format}, this version reads {FORMAT}. {conversion}"
        )
    if store_format > FORMAT:
        raise SteptimeError(
            f"{store} has format {store_format}, this version reads {FORMAT}. Use a newer steptime."
        )


def schema_problem(schema: object, expected: str) -> str:
    """Why a file of this schema is not read; empty if it is. The file is part of a store."""
    if schema == expected:
        return ""
    name, _, number = str(schema).partition("/")
    older = name == expected.partition("/")[0] and number.isdecimal()
    if older and int(number) < int(expected.partition("/")[2]):
        return f"written as {schema!r}: convert its store with `steptime store convert OLD NEW`"
    return f"written as {schema!r}, this version reads {expected!r}: use a newer steptime"
