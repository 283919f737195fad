"""Whatever is sent, a guide and its store go on with what is good."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

testclient = pytest.importorskip(
    "fastapi.testclient", reason="the guide is not installed: pip install '.[guide]'"
)

from command_line import call_command
from mutations import mutate, parse, real_journals
from steptime.index.workspace import Workspace
from steptime.store.folder import FolderStore
from steptime.store.journals import paths
from steptime.web.access import Access
from steptime.web.server import make_app

pytestmark = pytest.mark.slow

TOKEN = "0123456789abcdef0123456789abcdef"
MUTATIONS = 400
PAGES = (
    "/",
    "/?by=session",
    "/?x=effective_batch&by=framework",
    "/runs",
    "/runs.csv",
    "/history",
    "/certificates",
    "/machines",
    "/campaigns",
    "/report.html",
    "/reference",
    "/chart.svg",
    "/api/v1/runs",
    "/api/v1/chart",
    "/api/v1/scaling",
    "/api/v1/facets",
    "/api/v1/catalogue",
)


class Sent:
    """A guide to which good journals were sent, and mutated ones."""

    def __init__(self, folder: Path) -> None:
        self.store = folder / "store"
        self.guide = testclient.TestClient(
            make_app(Workspace(FolderStore(self.store)), Access(token=TOKEN)),
            base_url="http://127.0.0.1:8765",
            headers={"Authorization": f"Bearer {TOKEN}"},
            follow_redirects=False,
        )
        self.journals = real_journals(folder)
        self.good = [self._send(journal) for journal in self.journals]
        assert all(self.good)
        rng = random.Random(17)
        mutated = [mutate(rng.choice(self.journals), rng) for _ in range(MUTATIONS)]
        # Those that the guide refuses get into other stores all the same: by hand, by a disk.
        self.refused = [journal for journal in mutated if not self._send(journal)]

    def _send(self, journal: bytes) -> str:
        """The id, or nothing if the guide refuses the journal with a sentence."""
        answer = self.guide.post("/api/v1/runs", content=journal)
        if answer.status_code == 201:
            return str(answer.json()["id"])
        assert answer.status_code == 422 and answer.json()["detail"]
        return ""

    @property
    def measured(self) -> list[str]:
        """The runs of the first journals, which no mutated one may hide."""
        lines = [parse(journal) for journal in self.journals]
        return [journal[0]["id"] for journal in lines if journal[-1]["measurement"]]

    def run_command(self, *arguments: str) -> Any:
        return call_command("--store", str(self.store), *arguments)


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Sent:
    return Sent(tmp_path_factory.mktemp("mutations"))


def test_receive_accepts_and_refuses_some_mutations(sent: Sent) -> None:
    assert 50 < len(sent.refused) < MUTATIONS - 50


@pytest.mark.parametrize("page", PAGES)
def test_page_answers_after_mutated_journals(sent: Sent, page: str) -> None:
    assert sent.guide.get(page).status_code == 200


def test_run_page_answers_for_every_accepted_run(sent: Sent) -> None:
    runs = [row["id"] for row in sent.guide.get("/api/v1/runs?limit=1000").json()["runs"]]
    assert set(sent.measured) <= set(runs)
    for run in runs:
        for page in (f"/run/{run}", f"/api/v1/runs/{run}"):
            assert sent.guide.get(page).status_code == 200, page


def test_commands_go_on_after_mutated_journals(sent: Sent, tmp_path: Path) -> None:
    report = str(tmp_path / "report.html")
    for arguments in (("list", "results"), ("report", "-o", report), ("store", "check")):
        result = sent.run_command(*arguments)
        assert result.returncode in (0, 1) and "Traceback" not in result.stderr
    listed = sent.run_command("list", "results").stdout
    for run in sent.measured:
        assert run[-8:] in listed
        assert sent.run_command("show", run).returncode == 0


def test_commands_name_what_is_set_aside_and_go_on(sent: Sent, tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    for number, journal in enumerate(sent.journals + sent.refused):
        path = store.journal(sent.good[0]).with_name(f"{number}.jsonl")
        path.write_bytes(journal)
    for arguments in (
        ("list", "results"),
        ("report", "-o", str(tmp_path / "report.html")),
        ("show", sent.measured[0]),
    ):
        result = call_command("--store", str(store.path), *arguments)
        assert result.returncode == 0, result.stderr[-500:]
    wrong = call_command("--store", str(store.path), "store", "check").stdout
    assert "set aside (line 1: begin" in wrong


def test_compact_moves_every_accepted_journal(sent: Sent) -> None:
    """Last, because the others read journals."""
    before = [attempt.id for attempt in FolderStore(sent.store).attempts()]
    assert sent.run_command("store", "compact").returncode == 0
    store = FolderStore(sent.store)
    assert (paths(sent.store), [attempt.id for attempt in store.attempts()]) == ([], before)
