"""Horovod. `make horovod` builds what these tests need.

contracts/test_ranks.py shows that two ranks train like one process."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from steptime.core.case import Case
from steptime.core.errors import NotInstalled
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.frameworks import pytorch
from steptime.run.local import LocalExecutor
from steptime.store.folder import FolderStore
from steptime.store.journal import uuid7

SHARED: dict[str, Any] = {
    "workload": "mnist-mlp",
    "exchange": "horovod",
    "devices": 2,
    "threads": 1,
}
needs_horovod = pytest.mark.skipif(
    find_spec("horovod") is None,
    reason="Horovod is not installed; `make horovod` builds it in some ten minutes",
)


@needs_horovod
@pytest.mark.live
@pytest.mark.usefixtures("no_orphans")
@pytest.mark.parametrize("mode", ["eager", "compiled"])
def test_horovod_ranks_measure_a_step_and_its_exchange(
    mode: str, tmp_path: Path, short: Protocol
) -> None:
    case = Case(**SHARED, mode=mode)
    job = Job(id=uuid7(), session="s", plan="p", process=0, case=case, protocol=short)
    attempt = LocalExecutor().run(job, FolderStore(tmp_path / "results"))
    assert attempt.measurement is not None, attempt.failure
    exchange = attempt.findings["exchange"]
    facts = attempt.measurement.facts
    assert exchange["ranks"] == 2
    assert exchange["bytes"] == 4 * attempt.network["trainable_parameters"]
    assert exchange["backend"] == facts["exchange_backend"] == "horovod over gloo"
    assert exchange["tiny"]["bytes"] == 4 and len(exchange["rank_seconds"]) == 2


@needs_horovod
@pytest.mark.live
@pytest.mark.usefixtures("no_orphans")
def test_horovod_ranks_can_be_started_by_horovodrun(
    tmp_path: Path, short: Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "machine.toml"
    line = [
        str(Path(sys.executable).with_name("horovodrun")),
        "--gloo",
        "-np",
        "2",
        "-H",
        "localhost:2",
        sys.executable,
    ]
    file.write_text(f"[frameworks.pytorch]\nlaunch = {line}\n")
    monkeypatch.setenv("STEPTIME_MACHINE", str(file))
    job = Job(id=uuid7(), session="s", plan="p", process=0, case=Case(**SHARED), protocol=short)
    attempt = LocalExecutor().run(job, FolderStore(tmp_path / "results"))
    assert attempt.measurement is not None, attempt.failure
    assert attempt.findings["exchange"]["ranks"] == 2


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"device": "cuda:0"}, "over gloo on the CPU"), ({"precision": "fp16"}, "loss scaling")],
)
def test_horovod_unsupported_gives_a_reason(changes: dict[str, Any], reason: str) -> None:
    from steptime.frameworks.pytorch import exchange

    assert reason in str(exchange.unsupported(Case(**{**SHARED, **changes})))


def test_horovod_missing_names_the_make_target(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("steptime.frameworks.pytorch.horovod.find_spec", lambda name: None)
    with pytest.raises(NotInstalled, match=r"make horovod"):
        pytorch.unsupported(Case(**SHARED))
