"""No request that OpenAPI describes ends in an error of the server."""

from __future__ import annotations

import random
from typing import Any

import pytest

schemathesis = pytest.importorskip(
    "schemathesis", reason="schemathesis is not installed: pip install '.[dev]'"
)
pytest.importorskip("fastapi", reason="the guide is not installed: pip install '.[guide]'")

from hypothesis import HealthCheck, Phase, given, settings, strategies

from steptime.index.workspace import Workspace
from steptime.store.folder import FolderStore
from steptime.web.access import Access
from steptime.web.server import make_app

TOKEN = "0123456789abcdef0123456789abcdef"
EXAMPLES = 12  # for each of about fifteen addresses: half a minute


@pytest.fixture(scope="module")
def description(tmp_path_factory: pytest.TempPathFactory) -> Any:
    rng, workspace = random.Random(0), Workspace(FolderStore(tmp_path_factory.mktemp("store")))
    workspace.index.add(
        {
            "id": f"{number}",
            "started": "2026-01-01",
            "model": rng.choice("ab"),
            "framework": rng.choice("cd"),
            "replica_batch": number % 3,
            "throughput": rng.random(),
            "status": "ok",
            "plausible": "yes",
        }
        for number in range(50)
    )
    return schemathesis.openapi.from_asgi(
        "/openapi.json", make_app(workspace, Access(token=TOKEN)), headers=_bearer()
    )


def _bearer() -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKEN}"}


@pytest.mark.live
def test_server_has_no_error_for_any_query(description: Any) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(data=strategies.data())
    def ask(operation: Any, data: strategies.DataObject) -> None:
        case = data.draw(operation.as_strategy())
        answer = case.call(headers=_bearer())
        assert answer.status_code < 500, f"{case.formatted_path} {case.query}: {answer.text}"
        assert answer.status_code not in (401, 403), "nothing was asked"

    operations = [found.ok() for found in description.get_all_operations()]
    assert len(operations) >= 14
    for operation in operations:
        ask(operation)
