"""The guide's index follows a database as it follows a folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

psycopg = pytest.importorskip("psycopg", reason="needs the extra postgres")
testclient = pytest.importorskip(
    "fastapi.testclient", reason="the guide is not installed: pip install '.[guide]'"
)

from mutations import reseal
from steptime.core.errors import SteptimeError
from steptime.core.foreign import ForeignRun
from steptime.core.record import Record
from steptime.index.query import from_url
from steptime.index.workspace import Workspace
from steptime.store.blobs import Blobs
from steptime.store.folder import FolderStore
from steptime.store.imports import Imports, foreign_runs
from steptime.store.postgres import PostgresStore
from steptime.store.push import push
from steptime.web.access import Access
from steptime.web.server import make_app

EVERYTHING = from_url("!status=nobody&!plausible=maybe")
TOKEN = "0123456789abcdef0123456789abcdef"
Measured = Callable[..., str]


@pytest.fixture
def measured(store: FolderStore, attempt_of: Any, times_of: Any, write: Any) -> Measured:
    def make(session: str = "s", process: int = 0) -> str:
        return str(
            write(
                store, replace(attempt_of(times_of(0, steps=40)), session=session, process=process)
            )
        )

    return make


def imported(store: FolderStore, count: int = 2) -> None:
    runs = [
        ForeignRun(
            source="lambda",
            original="ab" * 32,
            file="f",
            location=f"row {i}",
            metrics={"throughput": 1.0 + i},
        )
        for i in range(count)
    ]
    with Imports(store.path) as imports:
        imports.keep("ab" * 32, b"x", runs)


def seen(workspace: Workspace) -> list[dict[str, Any]]:
    workspace.expect_changes()
    workspace.refresh()
    return sorted(workspace.index.list_runs(EVERYTHING, 1000), key=lambda row: str(row["id"]))


def test_index_of_a_database_equals_that_of_the_folder(
    store: FolderStore, database: str, measured: Measured
) -> None:
    workspace = Workspace(PostgresStore(database))
    assert seen(workspace) == []
    first = measured("a")
    imported(store)
    push(store, database)
    assert seen(workspace) == seen(Workspace(store)) and len(seen(workspace)) == 3
    measured("a", 1)
    measured("b")
    push(store, database)
    assert seen(workspace) == seen(Workspace(store)) and len(seen(workspace)) == 4
    found = workspace.find_run(first)
    assert isinstance(found, Record) and len(found.attempts) == 2
    foreign = next(row["id"] for row in seen(workspace) if row["source"] == "lambda")
    assert workspace.find_run(foreign) in list(foreign_runs(store.path))


def test_news_fetches_only_new_rows(
    store: FolderStore, database: str, measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    from steptime.store import postgres

    workspace, fetched = Workspace(PostgresStore(database)), list[int]()
    measured("a")
    imported(store)
    push(store, database)
    seen(workspace)
    real = postgres._piece
    monkeypatch.setattr(
        postgres, "_piece", lambda table, rows: fetched.append(len(rows)) or real(table, rows)
    )
    seen(workspace)
    assert fetched == []
    measured("b")
    push(store, database)
    assert len(seen(workspace)) == 4 and fetched == [1]


def test_news_sees_a_transaction_that_ends_late(
    store: FolderStore, database: str, measured: Measured
) -> None:
    """Its number is smaller than that of one that was seen already."""
    workspace = Workspace(PostgresStore(database))
    late = measured("late")
    push(store, database)
    with psycopg.connect(database) as slow:
        slow.execute("CREATE TEMP TABLE kept AS SELECT * FROM runs")
        slow.execute("DELETE FROM runs")
        slow.commit()
        columns = (
            "id, session, plan, started, ended, task, status, case_key, workload, "
            "framework, phase, device"
        )
        columns += ", precision, batch_size, machine, record, journal"
        slow.execute(f"INSERT INTO runs ({columns}) SELECT {columns} FROM kept")
        store.journal(late).unlink()
        early = measured("early")
        push(store, database)
        assert [row["id"] for row in seen(workspace)] == [early]
        slow.commit()
    assert {row["id"] for row in seen(workspace)} == {late, early}


def test_news_notices_another_database_of_the_same_name(
    store: FolderStore, database: str, measured: Measured
) -> None:
    workspace = Workspace(PostgresStore(database))
    measured("a")
    imported(store)
    push(store, database)
    assert len(seen(workspace)) == 3
    with psycopg.connect(database) as connection:
        connection.execute("DROP TABLE steptime_store, runs, foreign_runs, machines, blobs")
    assert len(seen(workspace)) == 3  # no tables: nothing is known to be different
    (store.path / "imports" / f"{'ab' * 32}.jsonl").unlink()
    push(store, database)
    assert len(seen(workspace)) == 1


def test_push_brings_older_tables_up_to_date(
    store: FolderStore, database: str, measured: Measured
) -> None:
    measured()
    push(store, database)
    with psycopg.connect(database) as connection:
        connection.execute(
            "ALTER TABLE runs DROP COLUMN batch; ALTER TABLE foreign_runs DROP COLUMN batch"
        )
        connection.execute(
            "ALTER TABLE steptime_store DROP COLUMN identity; DROP TABLE blobs, machines"
        )
    with pytest.raises(SteptimeError, match="store push"):
        seen(Workspace(PostgresStore(database)))
    push(store, database)
    assert len(seen(Workspace(PostgresStore(database)))) == 1


def test_machines_and_blobs_come_back_from_a_database(store: FolderStore, database: str) -> None:
    name, folder = Blobs(store.path).put(b"a trace"), store.path / "machines"
    folder.mkdir()
    (folder / "abc.json").write_text('{"peaks": {"cpu": {}}}')
    done = push(store, database)
    assert (done.machines, done.blobs) == (1, 1)
    damaged = Blobs(store.path).path("cd" * 32)
    damaged.parent.mkdir()
    damaged.write_bytes(b"not what its name says")
    again, kept = push(store, database), PostgresStore(database)
    assert (again.machines, again.blobs) == (0, 0) and "is not sent" in again.problems[0]
    assert kept.machines() == store.machines() != []
    assert kept.blob(name) == store.blob(name) == b"a trace" and kept.blob("cd" * 32) is None


def test_pages_answer_from_a_database(
    store: FolderStore, database: str, measured: Measured
) -> None:
    first, second = measured("a"), measured("b")
    imported(store)
    push(store, database)
    guide = testclient.TestClient(
        make_app(Workspace(PostgresStore(database))), base_url="http://127.0.0.1:8765"
    )
    foreign = guide.get("/api/v1/runs?source=lambda").json()["runs"][0]["id"]
    paths = [
        "/",
        "/runs",
        f"/run/{first}",
        f"/run/{foreign}",
        f"/compare?a={first}&b={second}",
        "/history",
    ]
    paths += ["/machines", "/certificates", "/chart.svg"]
    assert [guide.get(path).status_code for path in paths] == [200] * len(paths)


def test_guide_on_a_database_receives_a_run(
    store: FolderStore, database: str, measured: Measured
) -> None:
    text = store.journal(first := measured()).read_bytes()
    server = make_app(Workspace(PostgresStore(database)), Access(token=TOKEN))
    guide = testclient.TestClient(
        server, base_url="http://127.0.0.1:8765", headers={"Authorization": f"Bearer {TOKEN}"}
    )
    other = reseal(text.replace(b'"session":"s"', b'"session":"t"'))
    sent = [
        guide.post("/api/v1/runs", content=content).status_code for content in (text, text, other)
    ]
    assert sent == [201, 200, 409] and guide.get(f"/run/{first}").status_code == 200


def test_commands_draw_from_a_database(
    store: FolderStore,
    database: str,
    measured: Measured,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from steptime.cli.main import app as command

    measured()
    imported(store)
    push(store, database)
    monkeypatch.setenv("STEPTIME_STORE", "")
    command(
        ["--store", database, "chart", "x=source", "-o", str(tmp_path / "a.json")],
        standalone_mode=False,
    )
    text = (tmp_path / "a.json").read_text()
    assert "steptime" in text and "lambda" in text
