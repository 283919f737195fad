from __future__ import annotations

import json
import threading
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mutations import edit
from steptime.core.errors import SteptimeError
from steptime.core.foreign import ForeignRun
from steptime.core.job import Job
from steptime.store import push as pushing
from steptime.store.compaction import compact
from steptime.store.folder import FolderStore
from steptime.store.imports import Imports, foreign_runs
from steptime.store.journal import Journal, uuid7
from steptime.store.postgres import PostgresStore
from steptime.store.push import push

psycopg = pytest.importorskip("psycopg", reason="needs the extra postgres")
Keep = Callable[[Job], Path]
MakeJob = Callable[..., Job]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["\0", "'\"\\", "Größe"]
)
NUMBERS = st.integers(-(2**63), 2**63) | st.floats() | st.none() | st.booleans()


def import_rows(store: FolderStore, count: int, **changes: Any) -> None:
    data = f"{count} rows".encode()
    name = sha256(data).hexdigest()
    runs = [
        ForeignRun(source="s", original=name, file="f", location=f"row {i}", **changes)
        for i in range(count)
    ]
    with Imports(store.path) as imports:
        imports.keep(name, data, runs)


def counted(database: str, table: str) -> int:
    with psycopg.connect(database) as connection:
        row = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    assert row is not None
    return int(row[0])


def test_push_sends_journals_parts_and_imports_once(
    outcomes: FolderStore, database: str, keep: Keep, make_job: MakeJob
) -> None:
    compact(outcomes)
    keep(make_job())
    import_rows(outcomes, 5)
    done = push(outcomes, database)
    assert (done.runs, done.foreign_runs, done.present, done.problems) == (4, 5, 0, [])
    again = push(outcomes, database)
    assert (again.runs, again.foreign_runs, again.present) == (0, 0, 9)
    assert counted(database, "runs") == 4 and counted(database, "foreign_runs") == 5


def test_imported_rows_come_back_equal(store: FolderStore, database: str) -> None:
    import_rows(
        store, 3, metrics={"throughput": 0.1 + 0.2}, more={"z": 1, "a": "\0"}, started="in 2017"
    )
    push(store, database)
    kept = PostgresStore(database).foreign_runs()
    assert sorted(map(repr, kept)) == sorted(map(repr, foreign_runs(store.path)))


def test_push_does_not_change_the_folder(outcomes: FolderStore, database: str) -> None:
    before = {path: path.read_bytes() for path in outcomes.path.rglob("*.*") if path.is_file()}
    push(outcomes, database)
    assert {
        path: path.read_bytes() for path in outcomes.path.rglob("*.*") if path.is_file()
    } == before


def test_push_after_compaction_sends_nothing_again(outcomes: FolderStore, database: str) -> None:
    push(outcomes, database)
    compact(outcomes)
    assert (done := push(outcomes, database)).runs == 0 and done.present == 3


def test_push_in_small_batches_sends_the_same(
    outcomes: FolderStore, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pushing, "BATCH_CHARACTERS", 1)
    monkeypatch.setattr(pushing, "BATCH_ROWS", 2)
    import_rows(outcomes, 5)
    done = push(outcomes, database)
    assert (done.runs, done.foreign_runs) == (3, 5)


def test_push_works_from_two_processes_at_once(
    store: FolderStore, database: str, keep: Keep, make_job: MakeJob
) -> None:
    for _ in range(30):
        keep(make_job())
    done = []
    pushers = [
        threading.Thread(target=lambda: done.append(push(FolderStore(store.path), database)))
        for _ in range(4)
    ]
    for one in pushers:
        one.start()
    for one in pushers:
        one.join()
    assert sum(one.runs for one in done) == 30 == counted(database, "runs") and len(done) == 4


def test_records_can_be_queried_in_sql(outcomes: FolderStore, database: str) -> None:
    push(outcomes, database)
    question = (
        "SELECT record->'case'->>'workload', record->'failure'->>'cause', "
        "status FROM runs WHERE status != 'ok'"
    )
    with psycopg.connect(database) as connection:
        assert connection.execute(question).fetchall() == [("mnist-mlp", "crashed", "crashed")]
        row = connection.execute("SELECT started, record->>'started' FROM runs").fetchone()
    assert row is not None and row[0].isoformat(timespec="milliseconds") == row[1]


@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    found=st.lists(
        st.dictionaries(TEXTS, TEXTS | NUMBERS | st.lists(NUMBERS, max_size=3)),
        min_size=1,
        max_size=20,
    )
)
def test_attempts_come_back_to_the_last_digit(
    found: list[dict[str, Any]], tmp_path: Path, database: str, make_job: MakeJob
) -> None:
    """jsonb would change 1e+16 and the order, and refuse NaN and the character zero."""
    store, task = FolderStore(tmp_path / uuid7()), uuid7()
    for findings in found:
        job = make_job(task=task)
        with Journal(store.journal(job.id)) as journal:
            journal.begin(job)
            journal.write_findings(findings)
    assert push(store, database).runs == len(found)
    kept = PostgresStore(database).attempts(task)
    assert repr(kept) == repr(store.attempts(task))
    assert [json.dumps(attempt.findings) for attempt in kept] == [
        json.dumps(findings) for findings in found
    ]


def test_push_reports_an_invalid_id_and_sends_the_rest(
    store: FolderStore, database: str, keep: Keep, make_job: MakeJob
) -> None:
    keep(make_job())
    path = keep(make_job())
    path.write_text(path.read_text().replace(path.stem, "seven"))
    done = push(store, database)
    assert done.runs == 1 and str(path) in done.problems[0]


def test_push_reports_a_damaged_part_and_sends_the_rest(
    outcomes: FolderStore, database: str, keep: Keep, make_job: MakeJob
) -> None:
    compact(outcomes)
    outcomes.parts.paths()[0].write_bytes(b"")
    keep(make_job())
    done = push(outcomes, database)
    assert done.runs == 1 and "left as it is" in done.problems[0]


def test_push_to_an_unreachable_database_keeps_the_journals(outcomes: FolderStore) -> None:
    before = sorted(outcomes.path.rglob("*.jsonl"))
    with pytest.raises(SteptimeError, match="does not answer"):
        push(outcomes, "postgresql://127.0.0.1:1/team")
    assert sorted(outcomes.path.rglob("*.jsonl")) == before


def test_push_sends_the_others_beside_a_refused_row(
    store: FolderStore, database: str, keep: Keep, make_job: MakeJob, monkeypatch: Any
) -> None:
    ids = [keep(make_job(process=number)).stem for number in range(3)]
    make_row = pushing._run_row

    def make_odd_row(journal: Any) -> Any:
        row = make_row(journal)
        # As written by a version without bounds.
        return {**row, "batch_size": 3_000_000_000} if journal.id == ids[1] else row

    monkeypatch.setattr(pushing, "_run_row", make_odd_row)
    done = push(store, database)
    assert (done.runs, counted(database, "runs")) == (2, 2)
    (problem,) = done.problems
    assert f"runs {ids[1]}: not sent, the database refuses: integer out of range" in problem


def test_push_keeps_what_arrived_before_a_failure(
    store: FolderStore, database: str, keep: Keep, make_job: MakeJob, monkeypatch: Any
) -> None:
    for number in range(3):
        keep(make_job(process=number))
    monkeypatch.setattr(pushing, "BATCH_CHARACTERS", 1)
    insert = pushing._insert_all

    def lose_connection(connection: Any, table: str, rows: Any) -> int:
        if counted(database, "runs") == 2:
            raise psycopg.OperationalError("the connection is lost")
        return insert(connection, table, rows)

    monkeypatch.setattr(pushing, "_insert_all", lose_connection)
    with pytest.raises(SteptimeError, match="the connection is lost"):
        push(store, database)
    assert counted(database, "runs") == 2
    monkeypatch.undo()
    done = push(store, database)
    assert (done.runs, done.present) == (1, 2)


def test_push_names_a_record_that_is_set_aside(
    store: FolderStore, database: str, keep: Keep, make_job: MakeJob
) -> None:
    keep(make_job())
    odd = keep(make_job(process=1))
    edit(odd, '"session":"s1"', '"session":[]')
    done = push(store, database)
    assert (done.runs, done.left) == (1, {"damaged": 1})
    assert done.problems[0].startswith(f"{odd}: set aside (line 1: begin.session must be text")
