"""A campaign with every fault: each case ends with one result or with the right cause."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from steptime.core.record import Record
from steptime.run.slurm.folder import CampaignFolder, Key
from steptime.store import reader

pytestmark = pytest.mark.live
FATES = ("calm", "node", "requeued", "cancelled", "waiting", "limit", "memory", "crash")


class Storm:
    """What was seen on the way; cases by their fate."""

    def __init__(self, desk: Any) -> None:
        self.desk = desk
        frameworks = ["calm", "waits", "waits", "waits", "waits", "waits", "hoards", "segfault"]
        plan = desk.plan(*frameworks)
        cases = [
            replace(case, node_type="p100") if case.batch_size == 2 else case for case in plan.cases
        ]
        self.plan = replace(
            plan, cases=tuple(cases)
        )  # the node that is lost has nothing else on it
        self.first: dict[str, Record] = {}
        self.last: dict[str, Record] = {}

    def break_loose(self) -> None:
        desk, cluster = self.desk, self.desk.cluster
        self.submission = desk.submit(self.plan)
        self.task = {
            FATES[job.case.batch_size - 1]: f"{number}_{index}"
            for array, number in zip(self.submission.arrays, self.submission.numbers, strict=True)
            for index, (job,) in enumerate(array.tasks)
        }
        began = desk.wait(lambda found: all(self.node(found, fate) for fate in FATES[1:6]))
        self.lost_node = self.node(began, "node")
        cluster.call("scontrol", "update", f"jobid={self.task['limit']}", "EndTime=now+1")
        cluster.call("scancel", self.task["cancelled"])
        cluster.call("scontrol", "requeue", self.task["requeued"])
        cluster.call("scontrol", "requeuehold", self.task["waiting"])
        cluster.kill_slurmd(self.lost_node)
        time.sleep(1)
        cluster.call("scancel", self.task["waiting"])

    def settle(self) -> None:
        """The slurmd is missed, its task begins anew elsewhere while the old copy still runs."""
        desk = self.desk
        desk.wait(
            lambda found: self.restarted(found, "node") and self.ended(found, "limit", "memory")
        )
        self.first = self.by_fate(desk.collect())
        desk.open_gate()
        self.before = desk.until_over()
        desk.wait(lambda found: found.ghosts > 0)
        desk.cluster.start_node(self.lost_node)
        desk.cluster.wait_for_nodes()
        self.middle = self.by_fate(desk.collect())
        self.second = desk.submit(self.plan)
        desk.until_over()
        self.last = self.by_fate(desk.collect())

    def node(self, found: Any, fate: str) -> str:
        (place,) = [
            place for place in found.processes if place.case.batch_size == FATES.index(fate) + 1
        ]
        return place.node if place.state == "running" and self._begun(fate) else ""

    def _begun(self, fate: str, restart: int = 0) -> bool:
        folder: CampaignFolder = self.desk.folder
        case = self.plan.cases[FATES.index(fate)]
        path = folder.journal(Key(f"{case.key}-0", self.task[fate], restart))
        return path.exists() and b"context" in path.read_bytes()

    def restarted(self, found: Any, fate: str) -> bool:
        return self._begun(fate, 1)

    def ended(self, found: Any, *fates: str) -> bool:
        sizes = [FATES.index(fate) + 1 for fate in fates]
        return all(
            place.state in ("failed", "done")
            for place in found.processes
            if place.case.batch_size in sizes
        )

    def by_fate(self, records: list[Record]) -> dict[str, Record]:
        return {FATES[record.case.batch_size - 1]: record for record in records}


@pytest.fixture(scope="module")
def storm(storm_desk: Any) -> Storm:
    storm = Storm(storm_desk)
    storm.break_loose()
    storm.settle()
    return storm


def causes(record: Record) -> list[str]:
    return [failure.cause for failure in record.failures]


def test_storm_leaves_one_result_per_case(storm: Storm) -> None:
    counts = {fate: len(record.measurements) for fate, record in storm.last.items()}
    assert counts == {fate: int(fate not in ("memory", "crash")) for fate in FATES}


@pytest.mark.parametrize(
    "fate, cause",
    {
        "node": "node_failed",
        "requeued": "requeued",
        "cancelled": "cancelled",
        "waiting": "cancelled",
        "limit": "timed_out",
        "memory": "out_of_memory",
    }.items(),
)
def test_storm_failures_have_the_cause_of_slurm(storm: Storm, fate: str, cause: str) -> None:
    assert cause in causes(storm.last[fate])


def test_submit_never_repeats_a_result(storm: Storm) -> None:
    asked = {FATES[job.case.batch_size - 1] for array in storm.second.arrays for job in array.jobs}
    assert asked == {"cancelled", "waiting", "limit", "crash"}
    assert (storm.second.done, storm.second.live, storm.second.settled) == (3, 0, 1)


def test_submit_keeps_old_results(storm: Storm) -> None:
    old = {attempt.id: attempt for record in storm.middle.values() for attempt in record.attempts}
    new = {attempt.id: attempt for record in storm.last.values() for attempt in record.attempts}
    assert old.items() <= new.items() and len(new) > len(old)


def test_late_results_of_lost_nodes_are_set_aside(storm: Storm) -> None:
    (ghost,) = storm.desk.folder.ghosts()
    attempt = reader.read(ghost)
    assert attempt is not None and attempt.measurement is not None
    assert attempt.environment["slurm"]["SLURMD_NODENAME"] == storm.lost_node
    assert attempt.id not in {kept.id for kept in storm.desk.store.attempts()}


def test_restarts_are_separate_attempts(storm: Storm) -> None:
    record = storm.last["requeued"]
    assert causes(record) == ["requeued"] and len(record.attempts) == 2
    (good,) = [attempt for attempt in record.attempts if attempt.measurement]
    assert good.environment["slurm"]["SLURM_RESTART_COUNT"] == "1"


def test_records_name_node_and_job_but_no_person(storm: Storm) -> None:
    (attempt,) = storm.last["calm"].attempts
    slurm = attempt.environment["slurm"]
    assert slurm["SLURMD_NODENAME"].startswith("k80-") and storm.task["calm"].startswith(
        slurm["SLURM_ARRAY_JOB_ID"]
    )
    assert (
        "--gres=gpu:k80:1" in slurm["request"]
        and attempt.environment["CUDA_VISIBLE_DEVICES"] in "0123"
    )
    assert not any("USER" in name for name in slurm)


def test_failures_include_the_output_of_slurm(storm: Storm) -> None:
    (failure,) = storm.last["memory"].failures
    assert storm.task["memory"] in failure.reason and "memory" in failure.output


def test_read_progress_shows_lost_starts_before_collect(storm: Storm) -> None:
    assert storm.before.causes["cancelled"] == 2 and storm.before.causes["timed_out"] == 1


def test_storm_leaves_no_ended_journal_undelivered(storm: Storm) -> None:
    ended = [
        path for path in storm.desk.folder.running_folder.glob("*.jsonl") if reader.has_ended(path)
    ]
    assert ended == []
