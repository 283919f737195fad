"""Whatever is asked of the guide, no answer is an error of the server."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

testclient = pytest.importorskip(
    "fastapi.testclient", reason="the guide is not installed: pip install '.[guide]'"
)

from mutated_requests import addresses, find_server_error, mutate_request
from steptime.index.workspace import Workspace
from steptime.run.slurm.overview import Overview
from steptime.web.server import make_app
from workbench import make_workbench

pytestmark = pytest.mark.slow

SEED = 21
REQUESTS = 640


def test_server_has_no_error_for_mutated_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workbench = make_workbench(tmp_path, monkeypatch)
    app = make_app(Workspace(workbench.store), campaigns=Overview(workbench.store))
    guide = testclient.TestClient(app, base_url="http://127.0.0.1:8765", follow_redirects=False)
    rows = guide.get("/api/v1/runs?limit=1000").json()["runs"]
    # One of each source is enough.
    imported = {row["source"]: row["id"] for row in rows}
    runs = [*imported.values(), *workbench.results, workbench.profile]
    rng = random.Random(SEED)
    asked: Counter[str] = Counter()
    defects = {}
    for _ in range(REQUESTS):
        address, mutated = mutate_request(addresses(app), runs, rng)
        request = guide.build_request(
            mutated.method, mutated.url, headers=mutated.headers, content=mutated.body
        )
        asked[address] += 1
        if defect := find_server_error(guide, request):
            defects[f"{mutated}"[:300]] = defect
    assert not defects
    assert min(asked[address] for address in addresses(app)) >= 10
