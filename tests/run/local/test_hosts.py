"""Ranks on two hosts: the rate of their link determines the exchange. Needs root and iproute2."""

from __future__ import annotations

import importlib.util
import statistics
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from steptime.core.case import Case
from steptime.core.protocol import Protocol
from steptime.run import session
from steptime.store.folder import FolderStore

TINY = Protocol(
    preset="single",
    processes_least=1,
    processes_most=1,
    limit_seconds=120.0,
    least_steps=3,
    least_seconds=0.01,
    warmup_steps=3,
    warmup_seconds=0.01,
    warmup_most_seconds=0.05,
)


@pytest.fixture(scope="module")
def module() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "virtual_hosts", Path(__file__).parent / "virtual_hosts.py"
    )
    assert spec and spec.loader
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.fixture
def hosts(module: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    if reason := module.lacking():
        pytest.skip(reason)
    with module.VirtualHosts() as hosts:
        (tmp_path / "machine.toml").write_text(hosts.machine_file())
        monkeypatch.setenv("STEPTIME_MACHINE", str(tmp_path / "machine.toml"))
        yield hosts


def test_link_overhead_includes_headers(module: ModuleType) -> None:
    assert module.seconds(1_448_000, "100mbit") == pytest.approx(
        (1_514_000 + 33_000 - 16_384) / 12.5e6
    )


@pytest.mark.live
@pytest.mark.usefixtures("hosts")
@pytest.mark.parametrize(("exchange", "package"), [("allreduce", "torch"), ("horovod", "horovod")])
def test_exchange_takes_the_time_of_the_link(
    exchange: str, package: str, module: ModuleType, tmp_path: Path
) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    settings = {
        "threads": 1,
        "devices": 2,
        "nodes": 2,
        "exchange": exchange,
        "interconnect": "100mbit",
    }
    (record,) = session.run(
        [Case(workload="mnist-mlp", **settings)], TINY, FolderStore(tmp_path / "results")
    )
    assert record.failures == ()
    found = record.last.findings["exchange"]
    ratio = statistics.median(found["seconds"]) / module.seconds(found["bytes"], "100mbit")
    assert (
        0.95 <= ratio <= 3
    )  # the wire sets the least, with fewer acknowledgements; a busy machine adds to it
    assert record.case.interconnect == "100mbit" and found["bus_bytes_per_second"] < 12.5e6
    assert (
        found["latency_seconds"]["value"] < statistics.median(found["seconds"]) / 2
    )  # one number is no burden to it
