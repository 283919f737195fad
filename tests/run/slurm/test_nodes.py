"""Cases whose ranks lie on two nodes."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import pytest

from steptime.analysis.usage import usage
from steptime.plan.machine_file import parse

pytestmark = pytest.mark.live

MACHINE = """
[slurm.k80]
partition = "k80"
gres = "gpu:k80:{devices}"
memory = "2000M"
time = "5"
"""
TWO_NODES: dict[str, Any] = {"exchange": "allreduce", "devices": 2, "nodes": 2}


@pytest.mark.parametrize(
    ("exchange", "package", "backend"),
    [("allreduce", "torch", "gloo"), ("horovod", "horovod", "horovod over gloo")],
)
def test_ranks_on_two_nodes_exchange_gradients(
    exchange: str, package: str, backend: str, desk: Any
) -> None:
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    desk.protocol = replace(desk.protocol, monitor_seconds=0.2)
    desk.machine = parse(MACHINE, "machine.toml", ())
    desk.submit(desk.plan("pytorch", **{**TWO_NODES, "exchange": exchange}))
    desk.until_over()
    (record,) = desk.collect()
    assert record.measurements, record.failures
    ranks, told = record.measurements[0].ranks, record.last.findings["exchange"]
    assert sorted(rank.node for rank in ranks) == ["k80-0", "k80-1"]
    assert (told["backend"], told["ranks"]) == (backend, 2) and told["bus_bytes_per_second"] > 0
    seen = usage(record.last)  # both virtual nodes are this machine
    assert seen is not None and "partial" not in seen and seen["apart"]["most"] == 2


@pytest.mark.parametrize(
    ("framework", "cause", "reason"),
    [
        ("full_second", "out_of_memory", "Rank 1 of 2"),
        (
            "killed_second",
            "crashed",
            "rank 1 closed the connection|srun ended",
        ),  # whichever comes first
        ("fails", "crashed", "boom"),
    ],
)
def test_rank_lost_on_another_node_has_its_cause(
    desk: Any, framework: str, cause: str, reason: str
) -> None:
    desk.submit(desk.plan(framework, **{**TWO_NODES, "exchange": "independent"}))
    desk.until_over()
    (record,) = desk.collect()
    assert record.status == cause and re.search(reason, record.failures[-1].reason)


@pytest.mark.usefixtures("no_orphans")
def test_ranks_that_hang_are_ended_on_all_nodes(desk: Any) -> None:
    desk.protocol = replace(desk.protocol, limit_seconds=5.0)
    desk.submit(desk.plan("waits", **{**TWO_NODES, "exchange": "independent"}))
    desk.until_over()
    (record,) = desk.collect()
    assert record.status == "timed_out"
