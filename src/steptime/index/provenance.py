"""What the index was made of: which pieces of the store were read, and which attempts are where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from steptime.core.record import Attempt

TABLES = """
CREATE TABLE IF NOT EXISTS pieces (place VARCHAR, mark VARCHAR);
CREATE TABLE IF NOT EXISTS attempts (
    id VARCHAR, place VARCHAR, task VARCHAR, session VARCHAR, case_key VARCHAR, process INTEGER,
    ended BOOLEAN, run VARCHAR
);
"""
Key = tuple[str, str]  # a session and a case: what one record is made of


class Ledger:
    """In the index's own database, so that both are of one state. Written by one thread."""

    def __init__(self, database: Any) -> None:
        self._database = database
        database.execute(TABLES)
        pieces = database.execute("SELECT place, mark FROM pieces").fetchall()
        self.marks: dict[str, str] = dict(pieces)
        self._count = int(database.execute("SELECT count(*) FROM attempts").fetchone()[0])

    def known_ids(self, ids: Iterable[str]) -> set[str]:
        """Attempts that ended and need not be read again."""
        candidates = list(ids)
        if not candidates or not self._count:
            return set()
        text = "SELECT id FROM attempts WHERE ended AND id IN (SELECT unnest(?))"
        return {row[0] for row in self._execute(text, [candidates])}

    def note(self, attempts: Mapping[str, tuple[str, Attempt]]) -> None:
        """Records attempts by id, each with its location. `name_rows` later adds their rows."""
        if not attempts:
            return
        self.forget(list(attempts))
        rows = []
        for location, attempt in attempts.values():
            row = (
                attempt.id,
                location,
                attempt.task,
                attempt.session,
                attempt.case.key,
                attempt.process,
                bool(attempt.ended),
            )
            rows.append(row)
        columns = [list(column) for column in zip(*rows, strict=True)]
        # Whole columns as lists: a statement for each attempt takes much longer.
        lists = ", ".join(["unnest(?)"] * len(columns))
        self._execute(f"INSERT INTO attempts SELECT {lists}, NULL", columns)
        self._count += len(attempts)

    def move(self, ids: Iterable[str], location: str) -> None:
        text = "UPDATE attempts SET place = ? WHERE id IN (SELECT unnest(?))"
        self._execute(text, [location, list(ids)])

    def forget(self, ids: list[str]) -> None:
        self._execute("DELETE FROM attempts WHERE id IN (SELECT unnest(?))", [ids])

    def keys_at(self, locations: Iterable[str]) -> dict[str, Key]:
        """The attempts at these locations, each with the record that it belongs to."""
        text = "SELECT id, session, case_key FROM attempts WHERE place IN (SELECT unnest(?))"
        rows = self._execute(text, [list(locations)])
        return {attempt_id: (session, case) for attempt_id, session, case in rows}

    def members(self, keys: Iterable[Key]) -> dict[Key, dict[str, str]]:
        """The attempts of these records, by id, each with its location."""
        members: dict[Key, dict[str, str]] = {key: {} for key in keys}
        if not members:
            return members
        sessions, cases = zip(*members, strict=True)
        text = """
            WITH requested AS (SELECT unnest(?) AS session, unnest(?) AS case_key)
            SELECT session, case_key, id, place
            FROM attempts SEMI JOIN requested USING (session, case_key)
            WHERE task = 'measure'
        """
        rows = self._execute(text, [list(sessions), list(cases)])
        for session, case, attempt_id, location in rows:
            members[session, case][attempt_id] = location
        return members

    def rows_of(self, ids: Iterable[str]) -> list[str]:
        """The rows that were made from these attempts."""
        text = """
            SELECT DISTINCT run FROM attempts
            WHERE run IS NOT NULL AND id IN (SELECT unnest(?))
        """
        return [row[0] for row in self._execute(text, [list(ids)])]

    def name_rows(self, rows: Mapping[str, str]) -> None:
        """Records, for attempts by id, the row that was made from each."""
        if not rows:
            return
        text = """
            UPDATE attempts SET run = new.run
            FROM (SELECT unnest(?) AS id, unnest(?) AS run) AS new
            WHERE attempts.id = new.id
        """
        self._execute(text, [list(rows), list(rows.values())])

    def attempts_of_rows(
        self, rows: Iterable[str], *, last: bool = False
    ) -> dict[str, dict[str, str]]:
        """For each row its attempts, or the last one, by id, each with its location."""
        text = "SELECT run, id, place FROM attempts WHERE run IN (SELECT unnest(?))"
        if last:
            text += " QUALIFY row_number() OVER (PARTITION BY run ORDER BY process DESC) = 1"
        attempts: dict[str, dict[str, str]] = {}
        for run, attempt_id, location in self._execute(text, [list(rows)]):
            attempts.setdefault(run, {})[attempt_id] = location
        return attempts

    def attempts_of_task(self, task: str) -> dict[str, str]:
        return dict(self._execute("SELECT id, place FROM attempts WHERE task = ?", [task]))

    def mark(self, marks: Mapping[str, str], keep: Iterable[str]) -> None:
        """`keep`: locations whose marks outlive this process; the next reads the others again."""
        self.marks |= marks
        lasting = {location: marks[location] for location in keep}
        self._execute("DELETE FROM pieces WHERE place IN (SELECT unnest(?))", [list(marks)])
        if lasting:
            columns = [list(lasting), list(lasting.values())]
            self._execute("INSERT INTO pieces SELECT unnest(?), unnest(?)", columns)

    def unmark(self, locations: Iterable[str]) -> None:
        gone = list(locations)
        for location in gone:
            self.marks.pop(location, None)
        self._execute("DELETE FROM pieces WHERE place IN (SELECT unnest(?))", [gone])

    def _execute(self, text: str, values: list[Any]) -> list[tuple[Any, ...]]:
        return list(self._database.cursor().execute(text, values).fetchall())
