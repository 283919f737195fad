"""The server by itself: who is answered, what is refused and how, and what it takes in."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

testclient = pytest.importorskip(
    "fastapi.testclient", reason="the guide is not installed: pip install '.[guide]'"
)

from steptime.index.catalogue import DIMENSIONS, METRICS  # noqa: E402
from steptime.index.workspace import Workspace  # noqa: E402
from steptime.store.folder import FolderStore  # noqa: E402
from steptime.store.journal import uuid7  # noqa: E402
from steptime.web.access import Access  # noqa: E402
from steptime.web.pages import receive  # noqa: E402
from steptime.web.server import make_app  # noqa: E402

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
def test_this_machine_is_answered(client: Client, host: str) -> None:
    assert client(host=host).get("/").status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "169.254.0.1"])
def test_a_name_that_others_made_point_here_is_refused(client: Client, host: str) -> None:
    assert client(host=host).get("/api/v1/runs").status_code == 403


@pytest.mark.parametrize(
    "path", ["/", "/runs", "/api/v1/catalogue", "/static/guide.css", "/openapi.json", "/nowhere"]
)
def test_with_a_token_every_request_needs_it(client: Client, path: str) -> None:
    guide = client(TOKEN)
    assert guide.get(path).status_code == 401
    assert guide.get(path, headers={"Authorization": f"Bearer {TOKEN[:-1]}"}).status_code == 401
    assert guide.get(path, headers=BEARER).status_code in (200, 404)


def test_whoever_has_no_token_learns_nothing_of_the_store(client: Client, tmp_path: Path) -> None:
    journal = FolderStore(tmp_path / "store").journal(uuid7())
    journal.write_text("no journal\n")
    guide, strangers = client(TOKEN), {"Accept": "text/html"}
    assert journal.name in guide.get("/", headers={**BEARER, **strangers}).text
    assert journal.name not in guide.get("/", headers=strangers).text


def test_a_token_in_the_address_becomes_a_cookie_and_leaves_the_address(client: Client) -> None:
    guide = client(TOKEN)
    answer = guide.get(f"/runs?framework=jax&token={TOKEN}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/runs?framework=jax")
    assert (
        "HttpOnly" in answer.headers["set-cookie"]
        and "SameSite=strict" in answer.headers["set-cookie"]
    )
    assert guide.get("/runs").status_code == 200


def test_a_wrong_token_in_the_address_sets_no_cookie(client: Client) -> None:
    answer = client(TOKEN).get("/?token=wrong")
    assert answer.status_code == 401 and "set-cookie" not in answer.headers


@pytest.mark.parametrize("path", ["/", "/nowhere", "/?by=framewrk", "/api/v1/runs"])
def test_every_answer_carries_the_policy(client: Client, path: str) -> None:
    policy = client().get(path).headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe-eval" not in policy


def test_an_unknown_word_is_answered_with_the_known_ones(client: Client) -> None:
    answer = client().get("/api/v1/chart?by=framewrk")
    assert answer.status_code == 422 and "Did you mean 'framework'?" in answer.json()["detail"]
    assert (
        "framework" in answer.json()["known"]["dimensions"]
        and "throughput" in answer.json()["known"]["metrics"]
    )


@pytest.mark.parametrize("page", ["/runs", "/history"])
def test_a_table_says_of_each_run_what_it_counts(
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
def test_people_are_refused_in_the_pages_frame(client: Client, path: str) -> None:
    answer = client().get(path, headers=PERSON)
    assert answer.status_code == 422 and "<nav" in answer.text and "No " in answer.text


def test_words_of_others_are_shown_and_not_executed(client: Client) -> None:
    text = client().get("/?by=<script>alert(1)</script>", headers=PERSON).text
    assert "&lt;script&gt;" in text and "<script>alert" not in text


@pytest.mark.parametrize("path", ["/nowhere", "/run/nobody"])
def test_what_is_not_there_is_told_in_the_frame_or_as_json(client: Client, path: str) -> None:
    page, data = client().get(path, headers=PERSON), client().get(path)
    assert (page.status_code, data.status_code) == (404, 404)
    assert "<nav" in page.text and "detail" in data.json()


def test_one_run_can_not_be_compared(client: Client) -> None:
    assert "Tick exactly two runs" in client().get("/compare?run=a").json()["detail"]


def test_runs_are_not_taken_without_a_token(client: Client, journal: bytes) -> None:
    assert client().post("/api/v1/runs", content=journal).status_code == 403
    assert client(TOKEN).post("/api/v1/runs", content=journal).status_code == 401


def test_a_cookie_is_not_enough_to_write(client: Client, journal: bytes) -> None:
    guide = client(TOKEN)
    guide.get(f"/?token={TOKEN}")
    assert guide.post("/api/v1/runs", content=journal).status_code == 401


def test_a_journal_is_taken_once_and_shown(client: Client, journal: bytes) -> None:
    guide = client(TOKEN)
    first, second = (guide.post("/api/v1/runs", content=journal, headers=BEARER) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 200)
    assert (first.json()["new"], second.json()["new"]) == (True, False)
    assert guide.get(f"/run/{first.json()['id']}", headers=BEARER).status_code == 200


def test_a_taken_journal_is_kept_byte_for_byte_and_alone(
    client: Client, journal: bytes, tmp_path: Path
) -> None:
    client(TOKEN).post("/api/v1/runs", content=journal, headers=BEARER)
    (path,) = (path for path in (tmp_path / "store" / "journal").rglob("*") if path.is_file())
    assert path.read_bytes() == journal


def test_a_journal_makes_no_new_store_where_one_is_gone(
    client: Client, journal: bytes, tmp_path: Path
) -> None:
    guide = client(TOKEN)
    guide.post("/api/v1/runs", content=journal, headers=BEARER)
    guide.get("/", headers=BEARER)
    (tmp_path / "store").rename(tmp_path / "moved")
    answer = guide.post("/api/v1/runs", content=journal, headers=BEARER)
    assert answer.status_code == 503 and "The store is gone" in answer.json()["detail"]
    assert not (tmp_path / "store").exists()


def test_a_disk_that_refuses_a_journal_is_told(
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


def test_a_baseline_that_no_point_has_is_told(client: Client, journal: bytes) -> None:
    guide = client(TOKEN)
    guide.post("/api/v1/runs", content=journal, headers=BEARER)
    page = guide.get("/?by=framework&rel=framework:nobody", headers=BEARER).text
    assert "No point has a counterpart with framework:nobody" in page
    assert "No results match" not in page


def test_another_journal_of_the_same_id_is_refused(client: Client, journal: bytes) -> None:
    guide = client(TOKEN)
    guide.post("/api/v1/runs", content=journal, headers=BEARER)
    other = journal.replace(b'"session":"s"', b'"session":"t"')
    assert guide.post("/api/v1/runs", content=other, headers=BEARER).status_code == 409


def changed(journal: bytes, **values: Any) -> bytes:
    first, _, rest = journal.partition(b"\n")
    return json.dumps({**json.loads(first), **values}).encode() + b"\n" + rest


@pytest.mark.parametrize(
    "identifier",
    ["../../../escaped", "", 7, None, "01890000-0000-7000-8000-000000000000/../x",
     "{01890000-0000-7000-8000-000000000000}", "01890000-0000-4000-8000-000000000000",
     "ffffffff-ffff-7fff-bfff-ffffffffffff"],
)  # fmt: skip
def test_an_id_that_is_none_never_becomes_a_file(
    client: Client, journal: bytes, tmp_path: Path, identifier: Any
) -> None:
    answer = client(TOKEN).post(
        "/api/v1/runs", content=changed(journal, id=identifier), headers=BEARER
    )
    assert answer.status_code == 422
    assert [path for path in (tmp_path / "store").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    "damage", ["empty", "half", "no end", "noise", "newer", "nested", "case", "surrogate"]
)
def test_what_is_no_whole_journal_is_refused(client: Client, journal: bytes, damage: str) -> None:
    text = {
        "empty": b"", "half": journal[: len(journal) // 2], "no end": journal[: journal.rindex(b'{"line":"end"')],
        "noise": b"\x00\xff" * 100, "newer": journal.replace(b"steptime/2", b"steptime/9"),
        "nested": b"[" * 100_000, "case": changed(journal, case={"workload": 3, "phase": []}),
        "surrogate": changed(journal, session="\ud800"),
    }[damage]  # fmt: skip
    assert client(TOKEN).post("/api/v1/runs", content=text, headers=BEARER).status_code == 422


def test_odd_text_in_a_journal_breaks_no_page(client: Client, journal: bytes) -> None:
    guide = client(TOKEN)
    answer = guide.post(
        "/api/v1/runs", content=changed(journal, session="a\0b</script>"), headers=BEARER
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


def test_too_much_is_not_taken(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receive, "MOST_BYTES", 1000)
    assert (
        client(TOKEN).post("/api/v1/runs", content=b"x" * 1001, headers=BEARER).status_code == 413
    )


def test_a_record_without_sense_does_not_hide_the_others(
    tmp_path: Path, attempt_of: Any, times_of: Any, write: Any
) -> None:
    store = FolderStore(tmp_path / "store")
    good = attempt_of(times_of(0))
    for made in (good, replace(good, session="odd", network={"units_per_step": "many"})):
        write(store, made)
    workspace = Workspace(store)
    workspace.refresh()
    assert workspace.index.count() == 1 and any(
        "no result follows" in problem for problem in store.problems
    )


def test_the_description_names_every_word_of_a_question(client: Client) -> None:
    found = client().get("/openapi.json").json()["paths"]["/api/v1/chart"]["get"]["parameters"]
    assert {"y", "x", "by", "agg", "rel", "framework", "replica_batch"} <= {
        one["name"] for one in found
    }


def test_an_end_of_an_id_leads_to_its_run_and_nobodys_nowhere(
    client: Client, journal: bytes
) -> None:
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
