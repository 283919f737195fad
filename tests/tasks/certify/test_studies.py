"""What a certificate looks at: the whole network, and for training a reduced copy."""

from __future__ import annotations

import pytest

from steptime import workloads
from steptime.core.case import Case
from steptime.tasks.certify.studies import REDUCED, VERY_SLOW_SECONDS, WHOLE, Study, make_studies


def studies_of(name: str, batch_size: int = 2) -> list[Study]:
    case = Case(workload=name, framework="numpy", precision="fp64", batch_size=batch_size)
    return make_studies(workloads.load(name).build(case), case)


def test_make_studies_proves_a_small_network_as_a_whole() -> None:
    (study,) = studies_of("lenet5", 4)
    assert (study.network, study.is_complete) == (WHOLE, True)


def test_make_studies_trains_a_copy_of_a_deep_network() -> None:
    whole, copy = studies_of("resnet56-cifar")
    assert (whole.network, whole.is_complete, whole.has_gradients) == (WHOLE, False, True)
    assert (copy.network, copy.is_complete) == (REDUCED, True)
    assert copy.work.graph.stored_parameters < whole.work.graph.stored_parameters


def test_make_studies_leaves_out_gradients_that_take_minutes() -> None:
    whole, copy = studies_of("googlenet", 16)
    assert not whole.has_gradients and copy.has_gradients
    assert VERY_SLOW_SECONDS > 1


@pytest.mark.parametrize("name", ["lenet5", "resnet56-cifar"])
def test_make_studies_has_another_second_batch(name: str) -> None:
    for study in studies_of(name):
        assert (study.second["input"] != study.work.batch["input"]).any()
        assert study.second["input"].shape == study.work.batch["input"].shape
