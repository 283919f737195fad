"""What every plugin of `workloads` must have."""

from __future__ import annotations

from types import ModuleType

import pytest

from steptime import plugins, workloads
from steptime.core.case import Case
from steptime.core.errors import UnknownName


@pytest.fixture(params=plugins.names("workloads"))
def kind(request: pytest.FixtureRequest) -> ModuleType:
    return plugins.load("workloads", request.param)


def test_workload_kind_knows_its_names(kind: ModuleType) -> None:
    assert kind.names() and all(kind.knows(name) for name in kind.names())
    assert not kind.knows("no such workload")


def test_workload_describe_has_record_facts(kind: ModuleType) -> None:
    for name in kind.names():
        facts = kind.describe(Case(workload=name, batch_size=3))
        assert facts["fingerprint"] and facts["flops_per_step"] > 0
        assert (
            next(iter(facts["units_per_step"])) == facts["unit"]
            and min(facts["units_per_step"].values()) > 0
        )


def test_workload_name_belongs_to_one_kind() -> None:
    names = [
        name
        for kind in plugins.names("workloads")
        for name in plugins.load("workloads", kind).names()
    ]
    assert len(names) == len(set(names))


def test_unknown_workload_suggests_the_nearest() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'resnet50'"):
        workloads.load("resnet5O")
