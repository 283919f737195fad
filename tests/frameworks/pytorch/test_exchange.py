"""Exchange of gradients. contracts/test_ranks.py shows that two ranks train like one process."""

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
def test_ddp_ranks_measure_a_step_and_its_exchange(tmp_path: Path, short: Protocol) -> None:
    store = FolderStore(tmp_path / "results")
    job = Job(id=uuid7(), session="s", plan="p", process=0, case=Case(**SHARED), protocol=short)
    attempt = LocalExecutor().run(job, store)
    assert attempt.measurement is not None, attempt.failure
    exchange = attempt.findings["exchange"]
    facts = attempt.measurement.facts
    assert (exchange["backend"], exchange["ranks"], exchange["bytes"]) == (
        "gloo",
        2,
        4 * attempt.network["trainable_parameters"],
    )
    assert facts["kernels"]["c10d::allreduce_"] >= 1 and facts["exchange_backend"] == "gloo"
    assert [rank.threads for rank in attempt.measurement.ranks] == [1, 1]
    assert (
        exchange["tiny"]["bytes"] == 4
        and exchange["latency_seconds"]["value"] > 0
        and len(exchange["rank_seconds"]) == 2
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
def test_exchange_unsupported_gives_a_reason(changes: dict[str, Any], reason: str | None) -> None:
    answer = pytorch.unsupported(Case(**{**SHARED, **changes}))
    if reason is None:
        assert answer is None
    else:
        assert reason in str(answer)


@pytest.mark.parametrize(
    "changes", [{"exchange": "independent"}, {"phase": "forward"}, {"phase": "inference"}]
)
def test_exchange_is_not_needed_without_shared_gradients(changes: dict[str, Any]) -> None:
    program = lower(**changes)
    assert program.wrapped_module is program.module and "exchange_backend" not in program.facts()
    with pytest.raises(Unsupported, match="exchange nothing"):
        program.exchange()


def test_exchange_reports_ranks_that_were_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with pytest.raises(SteptimeError, match="2 ranks exchange gradients, and 1 were started"):
        lower()
