from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from steptime.core.errors import SteptimeError
from steptime.core.job import Job
from steptime.store.folder import FolderStore
from steptime.store.journal import Journal
from steptime.store.postgres import PostgresStore, is_database, public_address
from steptime.store.push import push

psycopg = pytest.importorskip("psycopg", reason="needs the extra postgres")
Keep = Callable[[Job], Path]
MakeJob = Callable[..., Job]
SECRET = "correct-horse"


def test_is_database_tells_addresses_from_folders() -> None:
    assert is_database("postgresql://h/n") and is_database("postgres://h/n")
    assert not is_database("results") and not is_database("/postgresql")


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://me:{SECRET}@db.example:5433/team",
        f"postgresql://db.example:5433/team?user=me&password={SECRET}",
        f"host=db.example port=5433 dbname=team password={SECRET}",
    ],
)
def test_public_address_has_no_user_and_password(address: str) -> None:
    assert public_address(address) == "postgresql://db.example:5433/team"


@pytest.mark.parametrize("password", [f"{SECRET}@x", f"{SECRET}%zz", f"{SECRET}/x", f"{SECRET}?x"])
def test_unreadable_address_does_not_repeat_the_password(password: str) -> None:
    with pytest.raises(SteptimeError) as told:
        PostgresStore(f"postgresql://me:{password}@127.0.0.1:1/team").attempts()
    assert SECRET not in str(told.value) and told.value.__cause__ is None


def test_address_that_is_not_utf_8_is_one_sentence() -> None:
    with pytest.raises(SteptimeError, match="postgresql://"):
        public_address("postgresql://\udcff/name")


def test_unreachable_database_does_not_repeat_the_password() -> None:
    with pytest.raises(SteptimeError, match="does not answer") as told:
        PostgresStore(f"postgresql://me:{SECRET}@127.0.0.1:1/team").attempts()
    assert SECRET not in str(told.value) and "journals are kept" in str(told.value)


def test_missing_database_is_one_sentence(server: Path) -> None:
    with pytest.raises(SteptimeError, match="does not exist"):
        PostgresStore(f"postgresql://test:{SECRET}@/nowhere?host={server}").attempts()


def test_database_without_tables_is_an_empty_store(database: str) -> None:
    store = PostgresStore(database)
    assert (store.attempts(), store.records(), store.foreign_runs(), store.find("0")) == (
        [],
        [],
        [],
        [],
    )


def test_database_answers_like_the_folder(outcomes: FolderStore, database: str) -> None:
    push(outcomes, database)
    store = PostgresStore(database)
    assert store.attempts() == outcomes.attempts() and repr(store.attempts()) == repr(
        outcomes.attempts()
    )
    assert (
        store.attempts("certify") == outcomes.attempts("certify")
        and store.records() == outcomes.records()
    )
    word = outcomes.attempts()[0].id[-8:]
    assert store.find(word) == outcomes.find(word) != []


def test_attempts_include_what_was_pushed_later(
    outcomes: FolderStore, database: str, keep: Keep, make_job: MakeJob
) -> None:
    push(outcomes, database)
    store = PostgresStore(database)
    store.attempts()
    keep(make_job())
    push(outcomes, database)
    assert store.attempts() == outcomes.attempts()


def test_attempts_skip_and_report_an_unreadable_row(outcomes: FolderStore, database: str) -> None:
    push(outcomes, database)
    first, second = outcomes.attempts()
    with psycopg.connect(database) as connection:
        connection.execute("UPDATE runs SET journal = '{}' WHERE id = %s", [first.id])
    store = PostgresStore(database)
    assert store.attempts() == [second] and first.id in store.problems[0]


@pytest.mark.parametrize(
    ("store_format", "sentence"), [(3, "newer steptime"), (1, "steptime store convert OLD NEW")]
)
def test_database_of_another_format_is_refused(
    store_format: int, sentence: str, outcomes: FolderStore, database: str
) -> None:
    push(outcomes, database)
    with psycopg.connect(database) as connection:
        connection.execute("UPDATE steptime_store SET format = %s", [store_format])
    for command in (PostgresStore(database).attempts, lambda: push(outcomes, database)):
        with pytest.raises(SteptimeError, match=sentence):
            command()


def test_table_of_another_program_is_one_sentence(
    store: FolderStore, database: str, make_job: MakeJob
) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("CREATE TABLE runs (kilometres integer)")
    with pytest.raises(SteptimeError, match="refuses"):
        PostgresStore(database).attempts()


def test_reading_commands_accept_a_database(
    outcomes: FolderStore,
    database: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from steptime.cli.main import app

    push(outcomes, database)
    monkeypatch.setitem(os.environ, "STEPTIME_STORE", "")
    app(["--store", database, "list", "results", "--json"], standalone_mode=False)
    assert outcomes.attempts()[0].id[-8:] in capsys.readouterr().out


def test_measuring_into_a_database_is_refused_with_advice(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from steptime.cli.request import store_folder

    monkeypatch.setenv("STEPTIME_STORE", database)
    with pytest.raises(SteptimeError, match="steptime store push"):
        store_folder()


def test_push_leaves_out_a_running_attempt(
    store: FolderStore, database: str, make_job: MakeJob
) -> None:
    job = make_job()
    with Journal(store.journal(job.id)) as journal:
        journal.begin(job)
        assert push(store, database).left == {"running": 1}
        journal.write_findings({})
    assert push(store, database).runs == 1


def test_attempts_go_on_beside_rows_that_are_set_aside(
    store: FolderStore, database: str, keep: Callable[[Job], Path], make_job: Callable[..., Job]
) -> None:
    ids = [keep(make_job(process=number)).stem for number in range(4)]
    push(store, database)
    bad_texts = ["[]", '{"line":"begin","schema":"steptime/2"}', "x"]
    with psycopg.connect(database) as connection:
        for identifier, text in zip(ids, bad_texts, strict=False):
            connection.execute("UPDATE runs SET journal = %s WHERE id = %s", [text, identifier])
    reader = PostgresStore(database)
    assert [attempt.id for attempt in reader.attempts()] == ids[3:]
    for identifier in ids[:3]:
        assert any(identifier in problem for problem in reader.problems)


def test_foreign_runs_and_machines_go_on_beside_bad_rows(store: FolderStore, database: str) -> None:
    push(store, database)
    good = '{"source":"s","original":"o","file":"f","location":"row 1"}'
    with psycopg.connect(database) as connection:
        for row in (good, "[]", '{"source":[]}', "x"):
            connection.execute(
                "INSERT INTO foreign_runs (id, source, original, record, row) "
                "VALUES (gen_random_uuid(), 's', 'o', '{}', %s)",
                [row],
            )
        for name, content in (("a", "{}"), ("b", "[]"), ("c", "x")):
            connection.execute("INSERT INTO machines VALUES (%s, %s)", [name, content])
    reader = PostgresStore(database)
    assert (len(reader.foreign_runs()), len(reader.problems)) == (1, 3)
    assert [machine["fingerprint"] for machine in reader.machines()] == ["a"]
    assert len(reader.problems) == 5
