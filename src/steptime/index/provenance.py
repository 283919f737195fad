"""What the index was made of: which pieces of the store were read, which attempts lie where, and whose row is whose."""

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
        self.marks: dict[str, str] = dict(
            database.execute("SELECT place, mark FROM pieces").fetchall()
        )
        self._count = int(database.execute("SELECT count(*) FROM attempts").fetchone()[0])

    def known_ids(self, ids: Iterable[str]) -> set[str]:
        """Attempts that ended and need not be read again."""
        wanted = list(ids)
        if not wanted or not self._count:
            return set()
        question = "SELECT id FROM attempts WHERE ended AND id IN (SELECT unnest(?))"
        return {row[0] for row in self._asked(question, [wanted])}

    def note(self, attempts: Mapping[str, tuple[str, Attempt]]) -> None:
        """Attempts by id, each with its place; their rows are told later."""
        if not attempts:
            return
        self.forget(list(attempts))
        found = [
            (one.id, place, one.task, one.session, one.case.key, one.process, bool(one.ended))
            for place, one in attempts.values()
        ]
        columns = [list(column) for column in zip(*found, strict=True)]
        self._asked(
            f"INSERT INTO attempts SELECT {', '.join(['unnest(?)'] * len(columns))}, NULL", columns
        )
        self._count += len(attempts)

    def move(self, ids: Iterable[str], place: str) -> None:
        self._asked(
            "UPDATE attempts SET place = ? WHERE id IN (SELECT unnest(?))", [place, list(ids)]
        )

    def forget(self, ids: list[str]) -> None:
        self._asked("DELETE FROM attempts WHERE id IN (SELECT unnest(?))", [ids])

    def at(self, places: Iterable[str]) -> dict[str, Key]:
        """Attempts that lie there, each with what it belongs to."""
        question = "SELECT id, session, case_key FROM attempts WHERE place IN (SELECT unnest(?))"
        return {row[0]: (row[1], row[2]) for row in self._asked(question, [list(places)])}

    def members(self, keys: Iterable[Key]) -> dict[Key, dict[str, str]]:
        """The attempts of these records, by id, each with its place."""
        found: dict[Key, dict[str, str]] = {key: {} for key in keys}
        if not found:
            return found
        sessions, cases = zip(*found, strict=True)
        wanted = "SELECT unnest(?) AS session, unnest(?) AS case_key"
        question = "SELECT session, case_key, id, place FROM attempts SEMI JOIN wanted USING (session, case_key)"
        for session, case, name, place in self._asked(
            f"WITH wanted AS ({wanted}) {question} WHERE task = 'measure'",
            [list(sessions), list(cases)],
        ):
            found[session, case][name] = place
        return found

    def rows_of(self, ids: Iterable[str]) -> list[str]:
        """The rows that these attempts stand behind."""
        question = (
            "SELECT DISTINCT run FROM attempts WHERE run IS NOT NULL AND id IN (SELECT unnest(?))"
        )
        return [row[0] for row in self._asked(question, [list(ids)])]

    def name_rows(self, rows: Mapping[str, str]) -> None:
        """Of attempts, by id: the id of the row that they stand behind."""
        if not rows:
            return
        new = "SELECT unnest(?) AS id, unnest(?) AS run"
        question = (
            f"UPDATE attempts SET run = new.run FROM ({new}) AS new WHERE attempts.id = new.id"
        )
        self._asked(question, [list(rows), list(rows.values())])

    def attempts_of_rows(
        self, rows: Iterable[str], *, last: bool = False
    ) -> dict[str, dict[str, str]]:
        """Of each row its attempts, or the last one, by id, each with its place."""
        question = "SELECT run, id, place FROM attempts WHERE run IN (SELECT unnest(?))"
        only = (
            " QUALIFY row_number() OVER (PARTITION BY run ORDER BY process DESC) = 1"
            if last
            else ""
        )
        found: dict[str, dict[str, str]] = {}
        for row, name, place in self._asked(question + only, [list(rows)]):
            found.setdefault(row, {})[name] = place
        return found

    def attempts_of_task(self, task: str) -> dict[str, str]:
        return dict(self._asked("SELECT id, place FROM attempts WHERE task = ?", [task]))

    def mark(self, marks: Mapping[str, str], keep: Iterable[str]) -> None:
        """`keep`: places whose marks outlive this process. The others are looked at again by the next."""
        self.marks |= marks
        kept = {place: marks[place] for place in keep}
        self._asked("DELETE FROM pieces WHERE place IN (SELECT unnest(?))", [list(marks)])
        if kept:
            self._asked(
                "INSERT INTO pieces SELECT unnest(?), unnest(?)", [list(kept), list(kept.values())]
            )

    def unmark(self, places: Iterable[str]) -> None:
        for place in (gone := list(places)):
            self.marks.pop(place, None)
        self._asked("DELETE FROM pieces WHERE place IN (SELECT unnest(?))", [gone])

    def _asked(self, question: str, values: list[Any]) -> list[tuple[Any, ...]]:
        return list(self._database.cursor().execute(question, values).fetchall())
