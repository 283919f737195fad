"""`steptime compare`: verdicts, inherited settings, refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from command_line import Command, Snapshot
from factories import ACCURACY
from steptime.core.case import Case

CALM = "workload=mnist-mlp,framework=calm"
StoreSession = Callable[..., list[str]]


@pytest.fixture
def two_sessions(store_session: StoreSession) -> tuple[str, str]:
    """Two cases each, eight processes of each; B is 5 % slower."""
    sessions: list[dict[str, Any]] = [{"session": "first"}, {"session": "second", "slower": 1.05}]
    for seed, facts in enumerate(sessions):
        cases = [Case(workload="mnist-mlp", batch_size=n, seed=seed) for n in (1, 8)]
        store_session(cases, processes=8, **facts)
    return "first", "second"


@pytest.mark.parametrize("columns", [80, 120])
def test_two_sessions_are_compared_case_by_case(
    columns: int, steptime: Command, snapshot: Snapshot, two_sessions: tuple[str, str]
) -> None:
    done = steptime("compare", *two_sessions, columns=columns)
    assert (done.returncode, done.stderr) == (0, "")
    snapshot(f"compare-sessions-{columns}", done.stdout)


def test_json_of_two_sessions_has_a_row_per_case_and_the_mean(
    steptime: Command, two_sessions: tuple[str, str]
) -> None:
    document = json.loads(steptime("compare", *two_sessions, "--json").stdout)
    assert [row["a"]["case"]["batch_size"] for row in document["rows"]] == [1, 8]
    assert document["geometric_mean"]["ratio"] == pytest.approx(1.05, rel=0.01)
    assert document["unmatched"] == 0


@pytest.mark.parametrize("processes", [2, 8])
def test_two_stored_results_are_compared_by_id(
    processes: int, steptime: Command, snapshot: Snapshot, store_session: StoreSession
) -> None:
    ids = []
    for session, slower in (("first", 1.0), ("second", 1.2)):
        case = Case(workload="mnist-mlp", seed=len(ids))
        ids += store_session([case], session=session, processes=processes, slower=slower)
    done = steptime("compare", ids[0][-8:], ids[1])
    assert done.returncode == 0
    snapshot(f"compare-results-{processes}-processes", done.stdout)


def test_stored_results_of_different_work_are_refused(
    steptime: Command, snapshot: Snapshot, store_session: StoreSession
) -> None:
    ids = store_session([Case(workload="mnist-mlp", batch_size=n) for n in (1, 8)])
    refused = steptime("compare", *ids)
    assert refused.returncode == 5
    snapshot("compare-refused", refused.stdout)
    forced = steptime("compare", *ids, "--force", "curious")
    assert forced.returncode == 0 and "note: force (curious): batch_size differs" in forced.stdout


@pytest.fixture
def two_precisions(store_session: StoreSession) -> list[str]:
    """fp32, and int8 in half of the time."""
    inference = {"workload": "mnist-mlp", "phase": "inference", "mode": "compiled"}
    ids = store_session([Case(**inference)], session="first", processes=8)
    int8 = Case(**inference, precision="int8")
    facts: dict[str, Any] = {"session": "second", "processes": 8, "slower": 0.5}
    return ids + store_session([int8], findings={"accuracy": ACCURACY}, **facts)


@pytest.mark.parametrize("columns", [80, 120])
def test_precisions_are_compared_with_their_accuracy_loss(
    columns: int, steptime: Command, snapshot: Snapshot, two_precisions: list[str]
) -> None:
    done = steptime("compare", *two_precisions, columns=columns)
    assert (done.returncode, done.stderr) == (0, "")
    snapshot(f"compare-precisions-{columns}", done.stdout)


def test_json_of_two_precisions_has_the_accuracy_loss(
    steptime: Command, two_precisions: list[str]
) -> None:
    document = json.loads(steptime("compare", *two_precisions, "--json").stdout)
    assert document["b"]["accuracy"]["top1_agreement"] == 0.987
    assert document["accuracy_loss"].startswith("int8's accuracy loss: top-1 agreement 98.7 %")


@pytest.fixture
def two_machines(store_session: StoreSession) -> list[str]:
    case = Case(workload="mnist-mlp")
    new = {
        "cpu": "Intel(R) Xeon(R) Platinum 8480+ with a very long name",
        "host": "node2",
        "cores": 56,
        "kernel": "6.18.44",
        "gpus": [{"name": "NVIDIA H200", "driver": "580.1"}],
    }
    old = {"cpu": "AMD EPYC", "host": "node1", "cores": 2, "kernel": "5.15.0", "gpus": []}
    software = [{"pytorch": "1.13.1", "python": "3.9"}, {"pytorch": "2.13.0", "python": "3.12"}]
    ids = store_session([case], session="first", processes=8, machine=old, software=software[0])
    facts: dict[str, Any] = {"machine": new, "software": software[1], "slower": 0.5}
    return ids + store_session([case], session="second", processes=8, **facts)


@pytest.mark.parametrize("columns", [80, 120])
def test_machine_and_software_that_differ_are_named(
    columns: int, steptime: Command, snapshot: Snapshot, two_machines: list[str]
) -> None:
    done = steptime("compare", *two_machines, columns=columns)
    assert done.returncode == 0 and "a case against itself" not in done.stdout
    snapshot(f"compare-machines-{columns}", done.stdout)


def test_session_deviation_is_learned_from_the_store(
    steptime: Command, store_session: StoreSession
) -> None:
    case = Case(workload="mnist-mlp")
    for number, slower in enumerate((1.0, 1.06, 0.94, 1.06, 0.94)):
        store_session([case], session=f"earlier{number}", slower=slower)
    first = store_session([case], session="first", processes=8)
    second = store_session([case], session="second", processes=8, slower=1.12)
    done = steptime("compare", *first, *second)
    assert done.stdout.startswith("Inconclusive")
    assert "session deviation 6 % (learned from 5 sessions)" in done.stdout


def test_stored_results_are_refused_if_an_early_process_is_invalid(
    steptime: Command, store_session: StoreSession
) -> None:
    case = Case(workload="mnist-mlp")
    sound = store_session([case], session="first", processes=8)
    invalid = store_session([case], session="second", processes=1, steady=False)
    store_session([case], session="second", processes=2)
    refused = steptime("compare", *sound, *invalid)
    assert refused.returncode == 5 and "is invalid: no_steady_state" in refused.stdout


@pytest.mark.live
@pytest.mark.usefixtures("misbehaving")
class TestMeasuring:
    def test_headline_has_the_verdict_and_the_pairs(
        self, steptime: Command, short_settings: str
    ) -> None:
        done = steptime("compare", f"{CALM},{short_settings}", "seed=1")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("Inconclusive: ×") and ", 1 pair." in done.stdout
        assert "differs  seed 0 → 1\n" in done.stdout
        # A single pair has no interval, so it has no p-value either.
        assert "p-value" not in done.stdout

    def test_b_inherits_the_settings_of_a(self, steptime: Command, short_settings: str) -> None:
        a = f"{CALM},batch_size=7,{short_settings}"
        document = json.loads(steptime("compare", a, "seed=1", "--json").stdout)
        assert document["b"]["case"] == {**document["a"]["case"], "seed": 1}
        assert document["differs"] == {"settings": {"seed": [[0], [1]]}}
        assert document["units"] == 1

    def test_json_names_software_machine_and_accuracy_of_both_sides(
        self, steptime: Command, short_settings: str
    ) -> None:
        document = json.loads(
            steptime("compare", f"{CALM},{short_settings}", "seed=1", "--json").stdout
        )
        for side in (document["a"], document["b"]):
            assert (
                side["software"]["python"] and side["machine"]["cpu"] and side["accuracy"] is None
            )

    def test_different_work_is_refused_before_it_is_measured(self, steptime: Command) -> None:
        done = steptime("compare", CALM, "batch_size=64", "--json")
        assert done.returncode == 5
        reasons = ["batch_size differs: 32 and 64"]
        assert json.loads(done.stdout) == {"verdict": None, "refused": reasons}

    def test_force_compares_and_notes_the_reason(
        self, steptime: Command, short_settings: str
    ) -> None:
        a = f"{CALM},{short_settings}"
        done = steptime("compare", a, "batch_size=64", "--force", "curious")
        assert done.returncode == 0
        assert "note: force (curious): batch_size differs" in done.stdout


def test_flags_of_a_case_are_refused_for_stored_results(steptime: Command) -> None:
    done = steptime("compare", "0123", "4567", "--mode", "eager")
    assert done.returncode == 1
    assert "--mode is for cases to measure, not for stored results." in done.stderr
