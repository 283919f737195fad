"""What each run says about its session, in the index's database: read without any samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from steptime.analysis.session_deviation import SessionValue

TABLE = """
CREATE TABLE IF NOT EXISTS session_values (
    run VARCHAR, machine VARCHAR, work VARCHAR, session VARCHAR, log_seconds DOUBLE
)
"""


class SessionHistory:
    """Written by the thread that updates the index."""

    def __init__(self, database: Any) -> None:
        self._database = database
        database.execute(TABLE)

    def replace(self, outdated: Sequence[str], values: Mapping[str, SessionValue]) -> None:
        """Removes what these runs said, and adds the values by run."""
        removed = [*outdated, *values]
        if removed:
            self._execute("DELETE FROM session_values WHERE run IN (SELECT unnest(?))", [removed])
        if not values:
            return
        # Whole columns as lists: a statement for each run takes much longer.
        columns = [list(values), *(list(column) for column in zip(*values.values(), strict=True))]
        lists = ", ".join(["unnest(?)"] * len(columns))
        self._execute(f"INSERT INTO session_values SELECT {lists}", columns)

    def of_machines(self, machines: Iterable[str]) -> list[SessionValue]:
        text = """
            SELECT machine, work, session, log_seconds FROM session_values
            WHERE machine IN (SELECT unnest(?))
        """
        return [SessionValue(*row) for row in self._execute(text, [list(machines)])]

    def _execute(self, text: str, values: list[Any]) -> list[tuple[Any, ...]]:
        return list(self._database.cursor().execute(text, values).fetchall())
