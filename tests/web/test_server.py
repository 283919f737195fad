"""The server by itself: who is answered, what is refused and how, and what it takes in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

testclient = pytest.importorskip(
    "fastapi.testclient", reason="the guide is not installed: pip install '.[guide]'"
)

from mutations import dump, edit, parse, reseal
from steptime.index.catalogue import DIMENSIONS, METRICS
from steptime.index.workspace import Workspace
from steptime.store.folder import FolderStore
from steptime.store.journal import uuid7
from steptime.web.access import Access
from steptime.web.pages import receive
from steptime.web.server import make_app

TOKEN = "0123456789abcdef0123456789abcdef"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
PERSON = {"Accept": "text/html,*/*"}
Client = Callable[..., Any]


@pytest.fixture
def client(tmp_path: Path) -> Client:
    def make(token: str = "", host: str = "127.0.0.1") -> Any:
        server = make_app(Workspace(FolderStore(tmp_path / "store")), Access(token=token))
        return testclient.TestClient(server, base_url=f"http://{host}:8765", follow_redirects=False)

    return make


@pytest.fixture
def journal(tmp_path: Path, attempt_of: Any, times_of: Any, write: Any) -> bytes:
    store = FolderStore(tmp_path / "elsewhere")
    return store.journal(write(store, attempt_of(times_of(0)))).read_bytes()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_server_answers_this_machine(client: Client, host: str) -> None:
    assert client(host=host).get("/").status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "169.254.0.1"])
def test_server_refuses_other_host_names(client: Client, host: str) -> None:
    assert client(host=host).get("/api/v1/runs").status_code == 403


@pytest.mark.parametrize(
    "path", ["/", "/runs", "/api/v1/catalogue", "/static/guide.css", "/openapi.json", "/nowhere"]
)
def test_server_with_a_token_needs_it_in_every_request(client: Client, path: str) -> None:
    guide = client(TOKEN)
    assert guide.get(path).status_code == 401
    assert guide.get(path, headers={"Authorization": f"Bearer {TOKEN[:-1]}"}).status_code == 401
    assert guide.get(path, headers=BEARER).status_code in (200, 404)


def test_server_tells_nothing_of_the_store_without_the_token(
    client: Client, tmp_path: Path
) -> None:
    journal = FolderStore(tmp_path / "store").journal(uuid7())
    journal.write_text("no journal\n")
    guide, strangers = client(TOKEN), {"Accept": "text/html"}
    assert journal.name in guide.get("/", headers={**BEARER, **strangers}).text
    assert journal.name not in guide.get("/", headers=strangers).text


def test_server_turns_a_token_in_the_url_into_a_cookie(client: Client) -> None:
    guide = client(TOKEN)
    answer = guide.get(f"/runs?framework=jax&token={TOKEN}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/runs?framework=jax")
    assert (
        "HttpOnly" in answer.headers["set-cookie"]
        and "SameSite=strict" in answer.headers["set-cookie"]
    )
    assert guide.get("/runs").status_code == 200


def test_server_sets_no_cookie_for_a_wrong_token(client: Client) -> None:
    answer = client(TOKEN).get("/?token=wrong")
    assert answer.status_code == 401 and "set-cookie" not in answer.headers


@pytest.mark.parametrize("path", ["/", "/nowhere", "/?by=framewrk", "/api/v1/runs"])
def test_server_sends_the_policy_with_every_response(client: Client, path: str) -> None:
    policy = client().get(path).headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe-eval" not in policy


def test_server_lists_known_names_after_an_unknown_one(client: Client) -> None:
    answer = client().get("/api/v1/chart?by=framewrk")
    assert answer.status_code == 422 and "Did you mean 'framework'?" in answer.json()["detail"]
    assert (
        "framework" in answer.json()["known"]["dimensions"]
        and "throughput" in answer.json()["known"]["metrics"]
    )


@pytest.mark.parametrize("page", ["/runs", "/history"])
def test_page_table_names_the_unit_of_each_run(
    client: Client, tmp_path: Path, attempt_of: Any, times_of: Any, write: Any, page: str
) -> None:
    made = attempt_of(times_of(0))
    for unit in ("images", "tokens"):
        network = {**made.network, "unit": unit}
        write(FolderStore(tmp_path / "store"), replace(made, session=unit, network=network))
    text = client().get(page).text
    assert " images/s</td>" in text and " tokens/s</td>" in text


@pytest.mark.parametrize(
    "path", ["/?by=framewrk", "/runs?colour=red", "/history?y=speed", "/compare?a=x=1&b=nobody"]
)
def test_server_explains_a_refusal_to_browsers_in_a_page(client: Client, path: str) -> None:
    answer = client().get(path, headers=PERSON)
    assert answer.status_code == 422 and "<nav" in answer.text and "No " in answer.text


def test_server_escapes_foreign_text(client: Client) -> None:
    text = client().get("/?by=<script>alert(1)</script>", headers=PERSON).text
    assert "&lt;script&gt;" in text and "<script>alert" not in text


@pytest.mark.parametrize("path", ["/nowhere", "/run/nobody"])
def test_server_reports_not_found_as_page_or_json(client: Client, path: str) -> None:
    page, data = client().get(path, headers=PERSON), client().get(path)
    assert (page.status_code, data.status_code) == (404, 404)
    assert "<nav" in page.text and "detail" in data.json()


def test_compare_page_refuses_a_single_run(client: Client) -> None:
    assert "Tick exactly two runs" in client().get("/compare?run=a").json()["detail"]


def test_receive_refuses_runs_without_a_token(client: Client, journal: bytes) -> None:
    assert client().post("/api/v1/runs", content=journal).status_code == 403
    assert client(TOKEN).post("/api/v1/runs", content=journal).status_code == 401


def test_receive_refuses_a_cookie(client: Client, journal: bytes) -> None:
    guide = client(TOKEN)
    guide.get(f"/?token={TOKEN}")
    assert guide.post("/api/v1/runs", content=journal).status_code == 401


def test_receive_stores_a_journal_once_and_shows_it(client: Client, journal: bytes) -> None:
    guide = client(TOKEN)
    first, second = (guide.post("/api/v1/runs", content=journal, headers=BEARER) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 200)
    assert (first.json()["new"], second.json()["new"]) == (True, False)
    assert guide.get(f"/run/{first.json()['id']}", headers=BEARER).status_code == 200


def test_receive_stores_a_journal_byte_for_byte(
    client: Client, journal: bytes, tmp_path: Path
) -> None:
    client(TOKEN).post("/api/v1/runs", content=journal, headers=BEARER)
    (path,) = (path for path in (tmp_path / "store" / "journal").rglob("*") if path.is_file())
    assert path.read_bytes() == journal


def test_receive_makes_no_new_store_if_it_is_gone(
    client: Client, journal: bytes, tmp_path: Path
) -> None:
    guide = client(TOKEN)
    guide.post("/api/v1/runs", content=journal, headers=BEARER)
    guide.get("/", headers=BEARER)
    (tmp_path / "store").rename(tmp_path / "moved")
    answer = guide.post("/api/v1/runs", content=journal, headers=BEARER)
    assert answer.status_code == 503 and "The store is gone" in answer.json()["detail"]
    assert not (tmp_path / "store").exists()


def test_receive_reports_a_full_disk(
    client: Client, journal: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.link", full)
    answer = client(TOKEN).post("/api/v1/runs", content=journal, headers=BEARER)
    assert (
        answer.status_code == 503
        and "No space left on device. Nothing was kept" in answer.json()["detail"]
    )


def test_explore_page_reports_a_baseline_that_no_point_has(client: Client, journal: bytes) -> None:
    guide = client(TOKEN)
    guide.post("/api/v1/runs", content=journal, headers=BEARER)
    page = guide.get("/?by=framework&rel=framework:nobody", headers=BEARER).text
    assert "No point has a counterpart with framework:nobody" in page
    assert "No results match" not in page


def test_receive_refuses_another_journal_of_the_same_id(client: Client, journal: bytes) -> None:
    guide = client(TOKEN)
    guide.post("/api/v1/runs", content=journal, headers=BEARER)
    other = reseal(journal.replace(b'"session":"s"', b'"session":"t"'))
    assert guide.post("/api/v1/runs", content=other, headers=BEARER).status_code == 409


def changed(journal: bytes, **values: Any) -> bytes:
    first, *rest = parse(journal)
    return dump([{**first, **values}, *rest])


@pytest.mark.parametrize(
    "identifier",
    [
        "../../../escaped",
        "",
        7,
        None,
        "01890000-0000-7000-8000-000000000000/../x",
        "{01890000-0000-7000-8000-000000000000}",
        "01890000-0000-4000-8000-000000000000",
        "ffffffff-ffff-7fff-bfff-ffffffffffff",
    ],
)
def test_receive_refuses_an_invalid_id(
    client: Client, journal: bytes, tmp_path: Path, identifier: Any
) -> None:
    answer = client(TOKEN).post(
        "/api/v1/runs", content=changed(journal, id=identifier), headers=BEARER
    )
    assert answer.status_code == 422
    assert [path for path in (tmp_path / "store").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    "damage",
    [
        "empty",
        "half",
        "no end",
        "noise",
        "newer",
        "nested",
        "case",
        "surrogate",
        "zero",
        "session",
        "batch",
        "flipped",
    ],
)
def test_receive_refuses_an_invalid_journal(client: Client, journal: bytes, damage: str) -> None:
    text = {
        "empty": b"",
        "half": journal[: len(journal) // 2],
        "no end": journal[: journal.rindex(b'{"line":"end"')],
        "noise": b"\x00\xff" * 100,
        "newer": journal.replace(b"steptime/2", b"steptime/9"),
        "nested": b"[" * 100_000,
        "case": changed(journal, case={"workload": 3, "phase": []}),
        "surrogate": changed(journal, session="\ud800"),
        "zero": changed(journal, session="a\0b"),
        "session": changed(journal, session=[]),
        "batch": changed(journal, case={"workload": "lenet5", "batch_size": 3_000_000_000}),
        "flipped": journal.replace(b'"process":0', b'"process":1'),
    }[damage]
    assert client(TOKEN).post("/api/v1/runs", content=text, headers=BEARER).status_code == 422


def test_pages_survive_odd_text_of_a_journal(client: Client, journal: bytes) -> None:
    guide = client(TOKEN)
    answer = guide.post(
        "/api/v1/runs", content=changed(journal, session="a</script>b"), headers=BEARER
    )
    assert answer.status_code == 201
    paths = (
        "/",
        f"/run/{answer.json()['id']}",
        "/runs",
        "/runs.csv",
        "/api/v1/runs",
        "/chart.svg?by=session",
    )
    assert [guide.get(path, headers=BEARER).status_code for path in paths] == [200] * len(paths)


def test_receive_refuses_a_journal_that_is_too_large(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receive, "MOST_BYTES", 1000)
    assert (
        client(TOKEN).post("/api/v1/runs", content=b"x" * 1001, headers=BEARER).status_code == 413
    )


def test_workspace_shows_others_beside_a_senseless_record(
    tmp_path: Path, attempt_of: Any, times_of: Any, write: Any
) -> None:
    store = FolderStore(tmp_path / "store")
    good = attempt_of(times_of(0))
    write(store, good)
    odd = store.journal(write(store, replace(good, session="odd")))
    edit(odd, '"units_per_step":32', '"units_per_step":"many"')
    workspace = Workspace(store)
    workspace.refresh()
    (problem,) = store.problems
    assert workspace.index.count() == 1
    assert problem.startswith(f"{odd}: set aside (line 2: context.network.units_per_step must be")


def test_openapi_names_every_parameter_of_a_query(client: Client) -> None:
    found = client().get("/openapi.json").json()["paths"]["/api/v1/chart"]["get"]["parameters"]
    assert {"y", "x", "by", "agg", "rel", "framework", "replica_batch"} <= {
        one["name"] for one in found
    }


def test_run_page_redirects_from_the_end_of_an_id(client: Client, journal: bytes) -> None:
    guide = client(TOKEN)
    name = guide.post("/api/v1/runs", content=journal, headers=BEARER).json()["id"]
    for path in (f"/run/{name[-9:]}", f"/run?id=+{name[:30]}"):
        assert guide.get(path, headers=BEARER).headers["location"] == f"/run/{name}"
    assert [
        guide.get(path, headers=BEARER).status_code for path in ("/run", "/run?id=x", "/run/%0d%0a")
    ] == [404] * 3


def test_reference_page_names_every_metric_dimension_and_route(client: Client) -> None:
    guide = client()
    text = guide.get("/reference").text
    assert all(f"<code>{name}</code>" in text for name in (*METRICS, *DIMENSIONS))
    assert all(path in text for path in guide.get("/openapi.json").json()["paths"])
