"""One real Slurm for all tests here, and a `desk` to submit from: store, machine file, cases."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from steptime.core.case import Case
from steptime.core.protocol import Protocol
from steptime.core.record import Record
from steptime.plan.expand import Plan
from steptime.plan.machine_file import MachineFile, parse
from steptime.run.slurm import campaign
from steptime.run.slurm.client import Slurm
from steptime.run.slurm.folder import CampaignFolder
from steptime.run.slurm.progress import Progress, read_progress
from steptime.store.folder import FolderStore

MACHINE = """
[slurm.k80]
partition = "k80"
gres = "gpu:k80:{devices}"
memory = "300M"
time = "5"
[slurm.p100]
partition = "p100"
gres = "gpu:p100:{devices}"
memory = "300M"
time = "5"
[tiers]
scratch = "$SCRATCH"
local = "$LOCAL"
"""


def _virtual_cluster() -> ModuleType:
    path = Path(__file__).with_name("virtual_cluster.py")
    spec = importlib.util.spec_from_file_location("virtual_cluster", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["virtual_cluster"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def clusters() -> ModuleType:
    module = _virtual_cluster()
    if reason := module.lacking():
        pytest.skip(reason)
    return module


@pytest.fixture(scope="session")
def open_folder() -> Iterator[Path]:
    """Not pytest's own folder, which is private: munge needs a socket that everybody can reach."""
    with tempfile.TemporaryDirectory(prefix="steptime-slurm-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="session")
def cluster(clusters: ModuleType, open_folder: Path) -> Iterator[Any]:
    with clusters.VirtualCluster(open_folder / "cluster") as running:
        yield running


@dataclass
class Desk:
    """Where somebody sits who submits."""

    path: Path
    cluster: Any
    protocol: Protocol
    machine: MachineFile

    @property
    def store(self) -> FolderStore:
        return FolderStore(self.path / "results")

    @property
    def folder(self) -> CampaignFolder:
        return campaign.find(self.store)

    def plan(self, *frameworks: str, **settings: Any) -> Plan:
        """A case for each; the batch size tells equal ones apart."""
        values = {"workload": "mnist-mlp", "node_type": "k80", **settings}
        cases = [
            Case(framework=name, batch_size=size, **values)
            for size, name in enumerate(frameworks, 1)
        ]
        return Plan(name="test", title="", protocol=self.protocol, cases=tuple(cases))

    def submit(self, plan: Plan) -> campaign.Submission:
        return campaign.submit(plan, self.store, self.machine)

    def progress(self) -> Progress:
        return read_progress(self.folder, Slurm())

    def collect(self) -> list[Record]:
        campaign.collect(self.folder, Slurm())
        return campaign.records(self.folder)

    def wait(self, reached: Callable[[Progress], bool], seconds: float = 90) -> Progress:
        deadline = time.monotonic() + seconds
        while not reached(found := self.progress()):
            if time.monotonic() > deadline:
                states = [(p.case.batch_size, p.state, p.cause) for p in found.processes]
                raise AssertionError(f"not reached within {seconds} s: {states}")
            time.sleep(0.2)
        return found

    def until_over(self) -> Progress:
        return self.wait(lambda found: found.is_over)

    def open_gate(self) -> None:
        (self.path / "gate").touch()


@pytest.fixture(scope="module")
def module_patch() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


def make_desk(path: Path, cluster: Any, patch: pytest.MonkeyPatch) -> Desk:
    protocol = Protocol(
        preset="single",
        processes_least=1,
        processes_most=1,
        block_seconds=0.01,
        least_steps=5,
        least_seconds=0.02,
        warmup_steps=10,
        warmup_seconds=0.02,
        warmup_most_seconds=0.1,
    )
    for name, value in {**cluster.variables, "STEPTIME_TEST_GATE": str(path / "gate")}.items():
        patch.setenv(name, value)
    return Desk(path, cluster, protocol, parse(MACHINE, "machine.toml", ()))


@pytest.fixture
def sit_down(
    tmp_path: Path, misbehaving: None, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Any], Desk]:
    return lambda cluster: make_desk(tmp_path, cluster, monkeypatch)


@pytest.fixture
def desk(sit_down: Callable[[Any], Desk], cluster: Any) -> Desk:
    return sit_down(cluster)


@pytest.fixture(scope="module")
def storm_desk(
    tmp_path_factory: pytest.TempPathFactory,
    cluster: Any,
    plug_ins: Callable[..., None],
    module_patch: Any,
) -> Desk:
    path = tmp_path_factory.mktemp("storm")
    plug_ins(path, module_patch)
    return make_desk(path, cluster, module_patch)
