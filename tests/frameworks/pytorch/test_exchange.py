"""That two ranks train as one process does is in contracts/test_ranks.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steptime import workloads
from steptime.core.case import Case
from steptime.core.errors import SteptimeError, Unsupported
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.frameworks import pytorch
from steptime.run.local import LocalExecutor
from steptime.store.folder import FolderStore
from steptime.store.journal import uuid7

SHARED: dict[str, Any] = {
    "workload": "mnist-mlp",
    "exchange": "allreduce",
    "devices": 2,
    "threads": 1,
}


def lower(**changes: Any) -> Any:
    case = Case(**{**SHARED, **changes})
    return pytorch.lower(workloads.load(case.workload).build(case), case)


@pytest.mark.live
@pytest.mark.usefixtures("no_orphans")
def test_two_ranks_measure_a_step_and_its_exchange(tmp_path: Path, short: Protocol) -> None:
    store = FolderStore(tmp_path / "results")
    job = Job(id=uuid7(), session="s", plan="p", process=0, case=Case(**SHARED), protocol=short)
    attempt = LocalExecutor().run(job, store)
    assert attempt.measurement is not None, attempt.failure
    told, facts = attempt.findings["exchange"], attempt.measurement.facts
    assert (told["backend"], told["ranks"], told["bytes"]) == (
        "gloo",
        2,
        4 * attempt.network["trainable_parameters"],
    )
    assert facts["kernels"]["c10d::allreduce_"] >= 1 and facts["exchange_backend"] == "gloo"
    assert [rank.threads for rank in attempt.measurement.ranks] == [1, 1]
    assert (
        told["tiny"]["bytes"] == 4
        and told["latency_seconds"]["value"] > 0
        and len(told["rank_seconds"]) == 2
    )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"exchange": "parameter_server"}, "no parameter server"),
        ({"exchange": "independent"}, None),
        ({"phase": "inference"}, None),
        ({}, None),
    ],
)
def test_what_ranks_can_not_do_is_said(changes: dict[str, Any], reason: str | None) -> None:
    found = pytorch.unsupported(Case(**{**SHARED, **changes}))
    assert found is None if reason is None else reason in str(found)


@pytest.mark.parametrize(
    "changes", [{"exchange": "independent"}, {"phase": "forward"}, {"phase": "inference"}]
)
def test_ranks_that_share_no_gradients_need_no_partner(changes: dict[str, Any]) -> None:
    program = lower(**changes)
    assert program.called is program.module and "exchange_backend" not in program.facts()
    with pytest.raises(Unsupported, match="exchange nothing"):
        program.exchange()


def test_ranks_that_nobody_started_are_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with pytest.raises(SteptimeError, match="2 ranks exchange gradients, and 1 were started"):
        lower()
