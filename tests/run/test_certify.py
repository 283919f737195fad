"""Which processes a certificate takes: the reference once, then each candidate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steptime import plugins, workloads
from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.core.job import Job
from steptime.core.record import Attempt, Failure
from steptime.run.certify import (
    REFERENCE,
    certified_case,
    certify,
    lowering_hash,
    settled_outcomes,
)
from steptime.store import reader
from steptime.store.folder import FolderStore
from steptime.store.journal import Journal

ITEM = {
    "item": "outputs",
    "passed": True,
    "error": 0.0,
    "bound": 1.0,
    "share": 0.0,
    "weak": False,
    "where": "",
}


class Examiner:
    """Writes what real workers write. `causes`: how a framework fails, and in which phases."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.causes: dict[str, tuple[str, tuple[str, ...]]] = {}
        self.without_fp64: tuple[str, ...] = ()

    def run(self, job: Job, store: FolderStore) -> Attempt:
        self.jobs.append(job)
        cause, phases = self.causes.get(job.case.framework, ("", ()))
        with Journal(path := store.journal(job.id)) as journal:
            journal.begin(job)
            network = workloads.load(job.case.workload).describe(job.case)
            journal.write_context(machine={}, software={}, network=network)
            if job.case.phase in phases:
                journal.write_failure(Failure(cause=Cause(cause), reason=f"no {job.case.phase}"))
            elif job.case.precision == "fp64" and job.case.framework in self.without_fp64:
                journal.write_failure(Failure(cause=Cause.UNSUPPORTED, reason="no fp64"))
            elif job.options.get("write"):
                journal.write_findings({"reference": "r"})
            else:
                covers = "inference" if job.case.phase == "inference" else "training"
                semantics = job.options.get("semantics", {})
                facts = {"version": "1", "covers": covers, "semantics": semantics, "items": [ITEM]}
                journal.write_findings({"certificate": facts})
        attempt = reader.read(path)
        assert attempt is not None
        return attempt

    @property
    def told(self) -> list[tuple[str, str]]:
        return [(job.case.framework, job.case.phase) for job in self.jobs]


@pytest.fixture
def examiner(monkeypatch: pytest.MonkeyPatch) -> Examiner:
    fake = Examiner()
    monkeypatch.setattr("steptime.run.local.LocalExecutor", lambda: fake)
    return fake


def case(framework: str = "pytorch", **settings: Any) -> Case:
    return Case(workload="mnist-mlp", framework=framework, **settings)


def test_certify_runs_the_reference_first_and_once(examiner: Examiner, store: FolderStore) -> None:
    outcomes = certify([case(), case("jax", mode="compiled")], store)
    frameworks = [framework for framework, _ in examiner.told]
    # fp32 and fp64 need a reference each, and each framework proves fp64 first.
    assert frameworks == [REFERENCE, REFERENCE, "pytorch", "pytorch", "jax", "jax"]
    assert all(outcome.passed for outcome in outcomes)
    assert {job.task for job in examiner.jobs} == {"certify"}
    assert Path(examiner.jobs[0].options["references"]) == (store.path / "references").absolute()


def test_certify_has_a_reference_per_precision(examiner: Examiner, store: FolderStore) -> None:
    certify([case(), case(precision="bf16")], store)
    references = [job for job in examiner.jobs if job.case.framework == REFERENCE]
    assert [job.options["precision"] for job in references] == ["fp32", "fp64", "bf16"]


def test_certify_allows_winograd_for_fp32_on_a_gpu(examiner: Examiner, store: FolderStore) -> None:
    certify([case(device="cuda:0"), case(device="cuda:0", precision="tf32")], store)
    precisions = [job.options["precision"] for job in examiner.jobs]
    assert precisions == ["fp32+fast", "fp64", "fp64", "fp32+fast", "tf32", "tf32"]


def test_certify_falls_back_to_inference(examiner: Examiner, store: FolderStore) -> None:
    examiner.causes["onnxruntime"] = ("unsupported", ("training",))
    outcome = certify([case("onnxruntime", mode="graph")], store)[0]
    assert outcome.certificate is not None and outcome.certificate.covers == "inference"
    assert outcome.no_training == "no training" and outcome.passed


def test_certify_returns_failures_with_their_reason(examiner: Examiner, store: FolderStore) -> None:
    examiner.causes["pytorch"] = ("crashed", ("training",))
    outcome = certify([case()], store)[0]
    assert outcome.certificate is None and outcome.attempt.failure is not None
    assert outcome.attempt.failure.reason == "no training" and not outcome.passed


def test_certify_without_a_reference_certifies_nothing(
    examiner: Examiner, store: FolderStore
) -> None:
    examiner.causes[REFERENCE] = ("out_of_memory", ("training",))
    outcomes = certify([case(), case("jax", mode="compiled")], store)
    assert examiner.told == [(REFERENCE, "training")]
    assert [outcome.attempt.case.framework for outcome in outcomes] == [REFERENCE, REFERENCE]


def test_certify_repeats_settled_cases_only_with_again(
    examiner: Examiner, store: FolderStore
) -> None:
    examiner.causes["onnxruntime"] = ("unsupported", ("training",))
    cases = [case(), case("onnxruntime", mode="graph")]
    first = certify(cases, store)
    count = len(examiner.jobs)
    assert [one.attempt.id for one in certify(cases, store)] == [one.attempt.id for one in first]
    assert len(examiner.jobs) == count
    certify(cases, store, again=True)
    assert len(examiner.jobs) == 2 * count


def test_settled_outcomes_run_no_process(examiner: Examiner, store: FolderStore) -> None:
    examiner.causes["onnxruntime"] = ("unsupported", ("training",))
    examiner.causes["jax"] = ("crashed", ("training",))
    first = certify(
        [case(), case("onnxruntime", mode="graph"), case("jax", mode="compiled")], store
    )
    # A crash settles nothing.
    fp32 = [outcome for outcome in settled_outcomes(store) if outcome.case.precision == "fp32"]
    assert fp32 == first[:2]


def test_certify_retries_a_crash(examiner: Examiner, store: FolderStore) -> None:
    examiner.causes["pytorch"] = ("crashed", ("training",))
    certify([case()], store)
    examiner.causes.clear()
    assert certify([case()], store)[0].passed


def test_certify_leaves_no_measurements(examiner: Examiner, store: FolderStore) -> None:
    certify([case()], store)
    assert store.attempts() == [] and len(store.attempts("certify")) == 4


@pytest.mark.parametrize("package", ["frameworks", "tasks"])
def test_lowering_hash_changes_with_the_source(
    package: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plugin = tmp_path / "plugin.py"
    plugin.write_text("number = 1")
    original = plugins.source

    def source(shelf: str, name: str) -> Path | None:
        return plugin if shelf == package else original(shelf, name)

    monkeypatch.setattr("steptime.plugins.source", source)
    before = lowering_hash(case())
    plugin.write_text("number = 2")
    assert lowering_hash(case()) != before


@pytest.mark.parametrize(
    ("network", "batch_size"), [("mnist-mlp", 4), ("resnet50", 2), ("gpt2", 1)]
)
def test_certified_case_has_a_small_batch(network: str, batch_size: int) -> None:
    assert certified_case(Case(workload=network, batch_size=64)).batch_size == batch_size


def test_certify_proves_semantics_in_fp64_once_for_all_precisions(
    examiner: Examiner, store: FolderStore
) -> None:
    outcomes = certify([case(), case(precision="bf16")], store)
    jobs = [job for job in examiner.jobs if job.case.framework == "pytorch"]
    assert [job.case.precision for job in jobs] == ["fp64", "fp32", "bf16"]
    for outcome in outcomes:
        assert outcome.certificate is not None
        assert outcome.certificate.semantics["certificate"] == jobs[0].id
        assert outcome.certificate.semantics["proves"] == ["outputs"]


def test_certify_says_why_there_is_no_fp64(examiner: Examiner, store: FolderStore) -> None:
    examiner.without_fp64 = ("onnxruntime",)
    outcome = certify([case("onnxruntime", mode="graph")], store)[0]
    assert outcome.certificate is not None and outcome.passed
    assert outcome.certificate.semantics == {"reason": "no fp64"}


def test_certify_fails_if_fp64_fails(
    examiner: Examiner, store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ITEM, "passed", False)
    certify([case(precision="fp64")], store)
    monkeypatch.setitem(ITEM, "passed", True)
    outcome = certify([case()], store)[0]
    assert outcome.certificate is not None and not outcome.certificate.failed
    assert not outcome.passed
