from __future__ import annotations

from typing import Any

import pytest

from steptime.core.case import Case
from steptime.core.errors import SteptimeError, UnknownName


def test_case_key_depends_on_the_settings_alone() -> None:
    case = Case(workload="lenet5")
    assert case.key == Case.from_dict(case.to_dict()).key
    others = [
        Case(workload="lenet5", batch_size=33),
        Case(workload="lenet5", trial=1),
        Case(workload="deepmnist"),
    ]
    assert len({case.key, *(other.key for other in others)}) == 4


def test_case_key_ignores_defaults() -> None:
    assert Case(workload="lenet5", mode="eager").key == Case(workload="lenet5").key


def test_case_suggests_the_nearest_name() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'inference'"):
        Case(workload="lenet5", phase="inferense")
    with pytest.raises(UnknownName, match="Did you mean 'batch_size'"):
        Case.from_dict({"workload": "lenet5", "batchsize": 1})


@pytest.mark.parametrize("device", ["CUDA", "7", "cuda:²", "gpu:0", "cuda:-1", "cpu:0"])
def test_case_refuses_unknown_devices(device: str) -> None:
    with pytest.raises(SteptimeError, match="device must be"):
        Case(workload="lenet5", device=device)


def test_case_on_cuda_is_on_the_first_gpu() -> None:
    case = Case(workload="lenet5", device="cuda")
    assert case == Case(workload="lenet5", device="cuda:0") and case.device == "cuda:0"


@pytest.mark.parametrize(
    ("name", "value"), [("batch_size", 0), ("batch_size", 1.5), ("threads", -1), ("seed", True)]
)
def test_case_refuses_counts_below_their_least(name: str, value: object) -> None:
    with pytest.raises(SteptimeError, match=f"{name} must be a whole number"):
        Case.from_dict({"workload": "lenet5", name: value})


@pytest.mark.parametrize("name", ["batch_size", "devices", "nodes", "threads", "prefetch", "trial"])
@pytest.mark.parametrize("value", [3_000_000_000, 10**40])
def test_case_refuses_counts_that_no_database_holds(name: str, value: int) -> None:
    with pytest.raises(SteptimeError, match=f"{name} must be a whole number of at most 2147483647"):
        Case.from_dict({"workload": "lenet5", name: value})


@pytest.mark.parametrize("name", ["workload", "framework", "weights", "node_type", "launch"])
@pytest.mark.parametrize("value", ["a\0b", "a\nb", "\ud800", "x" * 5000, ["x"], None])
def test_case_refuses_text_that_no_store_holds(name: str, value: object) -> None:
    with pytest.raises(SteptimeError, match=f"{name} must "):
        Case.from_dict({"workload": "lenet5", name: value})


def test_case_has_a_rank_per_device_with_an_exchange() -> None:
    assert Case(workload="lenet5", devices=4).ranks == 1
    shared = Case(workload="lenet5", devices=4, exchange="allreduce", nodes=2)
    assert (shared.ranks, shared.ranks_per_node) == (4, 2)


def test_case_refuses_ranks_spread_unevenly() -> None:
    with pytest.raises(SteptimeError, match="3 devices cannot be spread evenly over 2 nodes"):
        Case(workload="lenet5", devices=3, exchange="independent", nodes=2)


@pytest.mark.parametrize(
    ("settings", "threads"), [({}, 8), ({"devices": 2, "exchange": "allreduce"}, 4)]
)
def test_threads_of_shares_the_cpus_of_a_node(settings: dict[str, Any], threads: int) -> None:
    assert Case(workload="lenet5", **settings).threads_of(8) == threads
    assert Case(workload="lenet5", threads=3, **settings).threads_of(8) == 3


def test_threads_of_is_at_least_one() -> None:
    assert Case(workload="lenet5", devices=4, exchange="allreduce").threads_of(2) == 1


def test_case_label_shows_the_ranks() -> None:
    assert Case(workload="lenet5", devices=2, exchange="allreduce").label.endswith(
        "batch 32 2 × allreduce"
    )


def test_case_label_shows_every_unusual_setting() -> None:
    """`threads=2` was once left out, because a 2 stood in `batch 32` already."""
    words = Case(workload="mnist-mlp", threads=2, devices=2, exchange="allreduce").label
    assert words == "mnist-mlp training pytorch eager cpu fp32 batch 32 2 × allreduce threads=2"
