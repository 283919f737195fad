from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import pytest

from steptime.core.case import Case
from steptime.core.errors import SteptimeError
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.core.record import Attempt
from steptime.run import session
from steptime.run.session import plan_hash
from steptime.store.folder import FolderStore
from steptime.store.journal import uuid7

MakeCase = Callable[..., Case]


NETWORK = """
from steptime.graph import network

@network("mine", title="Mine", source="here")
def mine(net):
    return net.dense(net.input(4), {width})
"""


class Diary:
    """A watch that writes down what it is told."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, int]] = []
        self.attempts: list[Attempt] = []

    def on_start(self, job: Job, done: int, expected: int) -> None:
        self.lines.append((done, expected))

    def on_finish(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)


def test_run_measures_every_case_once_per_round(
    executor, store: FolderStore, short: Protocol, make_case
) -> None:
    cases = [make_case(size) for size in (1, 2, 3, 4)]
    records = session.run(cases, replace(short, processes_least=3, processes_most=3), store)
    sizes = [job.case.batch_size for job in executor.jobs]
    assert [sorted(sizes[first : first + 4]) for first in (0, 4, 8)] == [[1, 2, 3, 4]] * 3
    assert [record.case for record in records] == cases
    assert all([attempt.process for attempt in record.attempts] == [0, 1, 2] for record in records)


def test_run_shuffles_each_round_differently(executor, store, short: Protocol, make_case) -> None:
    session.run(
        [make_case(size) for size in range(1, 9)],
        replace(short, processes_least=4, processes_most=4),
        store,
    )
    sizes = [job.case.batch_size for job in executor.jobs]
    assert len({tuple(sizes[first : first + 8]) for first in (0, 8, 16, 24)}) > 2


def test_run_returns_a_complete_session(
    executor, store: FolderStore, short: Protocol, make_case
) -> None:
    first = session.run([make_case(1), make_case(2)], short, store)
    second = session.run([make_case(2), make_case(1)], short, store)
    assert len(executor.jobs) == 4
    assert {record.session for record in first} == {record.session for record in second}


def test_run_again_starts_a_new_session(
    executor, store: FolderStore, short: Protocol, make_case
) -> None:
    first = session.run([make_case()], short, store)
    again = session.run([make_case()], short, store, again=True)
    assert first[0].session != again[0].session and len(executor.jobs) == 4
    assert session.run([make_case()], short, store)[0].session == again[0].session


def test_run_continues_an_interrupted_session(executor, store, short: Protocol, make_case) -> None:
    executor.scripts[2] = iter(["", "interrupted"])
    cases, protocol = (
        [make_case(1), make_case(2)],
        replace(short, processes_least=3, processes_most=3),
    )
    with pytest.raises(KeyboardInterrupt):
        session.run(cases, protocol, store)
    kept = [attempt.id for attempt in store.attempts()]
    records = session.run(cases, protocol, store)
    assert set(kept) <= {attempt.id for record in records for attempt in record.attempts}
    assert [len(record.measurements) for record in records] == [3, 3] and len(store.attempts()) == 6


@pytest.mark.parametrize("cause", ["unsupported", "out_of_memory"])
def test_run_never_retries_a_final_failure(
    cause: str, executor, store, short: Protocol, make_case
) -> None:
    executor.scripts[1] = iter([cause])
    for _ in range(2):
        records = session.run([make_case(1), make_case(2)], short, store)
    assert [record.status for record in records] == [cause, "ok"]
    assert len(executor.jobs) == 3


def test_run_does_not_wait_for_a_time_limit_twice(executor, store, short, make_case) -> None:
    executor.scripts[1] = iter(["timed_out"])
    assert session.run([make_case(1)], short, store)[0].status == "timed_out"
    assert len(executor.jobs) == 1


def test_run_retries_an_accident_once(executor, store, short: Protocol, make_case) -> None:
    executor.scripts[1] = iter(["crashed"])
    [record] = session.run([make_case(1)], short, store)
    assert record.status == "ok" and len(record.measurements) == 2 and len(record.failures) == 1


def test_run_gives_up_a_case_that_keeps_crashing(executor, store, short, make_case) -> None:
    executor.scripts[1] = iter(["crashed"] * 3)
    records = session.run([make_case(1), make_case(2)], short, store)
    assert [(len(r.failures), len(r.measurements)) for r in records] == [(2, 0), (0, 2)]
    [later, _] = session.run([make_case(1), make_case(2)], short, store)
    assert [attempt.process for attempt in later.attempts] == [0, 1, 2, 3, 4]
    assert later.status == "ok"


def test_run_retries_not_installed_in_the_next_run_only(executor, store, short, make_case) -> None:
    executor.scripts[1] = iter(["not_installed"])
    assert session.run([make_case(1)], short, store)[0].status == "not_installed"
    assert len(executor.jobs) == 1
    assert session.run([make_case(1)], short, store)[0].status == "ok"


def test_plan_hash_ignores_the_order_of_cases(make_case: MakeCase, short: Protocol) -> None:
    plan = plan_hash([make_case(1), make_case(2)], short)
    assert plan == plan_hash([make_case(2), make_case(1)], short)
    assert plan != plan_hash([make_case(1)], short)
    assert plan != plan_hash([make_case(1), make_case(2)], replace(short, target=0.5))
    assert plan == plan_hash([make_case(1), make_case(2)], replace(short, steps=99, warmup_start=9))


def test_plan_hash_depends_on_the_network_of_a_file(
    tmp_path, short: Protocol, make_case: MakeCase
) -> None:
    file = tmp_path / "mine.py"
    plans = set()
    for width in (2, 3):
        file.write_text(NETWORK.format(width=width))
        os.utime(file, (width, width))  # so that the second is not taken for the first
        plans.add(plan_hash([make_case(workload=f"{file}:mine")], short))
    assert len(plans) == 2


def test_run_continues_after_an_unreadable_file_was_mended(
    tmp_path, executor, store, short: Protocol, make_case: MakeCase
) -> None:
    file = tmp_path / "mine.py"
    cases = [make_case(1), make_case(2, workload=f"{file}:mine")]
    executor.scripts[2] = iter(["unreadable"])
    first = session.run(cases, short, store)
    assert [record.status for record in first] == ["ok", "unreadable"]
    processes = len(executor.jobs)
    file.write_text(NETWORK.format(width=2))
    second = session.run(cases, short, store)
    assert [record.status for record in second] == ["ok", "ok"]
    assert {record.session for record in second} == {first[0].session}
    assert {job.case for job in executor.jobs[processes:]} == {cases[1]}
    processes = len(executor.jobs)
    session.run(cases, short, store)
    assert len(executor.jobs) == processes


def test_run_measures_a_repeated_case_once(executor, store, short: Protocol, make_case) -> None:
    assert len(session.run([make_case(1), make_case(1)], short, store)) == 1


def test_watch_is_called_before_and_after_each_process(
    executor, store, short: Protocol, make_case
) -> None:
    diary = Diary()
    session.run([make_case(1), make_case(2)], short, store, watch=diary)
    assert diary.lines == [(0, 4), (1, 4), (2, 4), (3, 4)]
    assert [attempt.id for attempt in diary.attempts] == [job.id for job in executor.jobs]


def test_run_refuses_a_second_run_of_the_same_plan(
    executor, store: FolderStore, short: Protocol, make_case
) -> None:
    with (
        store.hold(plan_hash([make_case()], short)),
        pytest.raises(SteptimeError, match="another process"),
    ):
        session.run([make_case()], short, store)
    assert store.attempts() == []


def test_run_does_not_continue_a_session_of_another_machine(
    executor,
    store: FolderStore,
    short: Protocol,
    make_case: MakeCase,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    [here] = session.run([make_case()], short, store)
    monkeypatch.setattr(session, "describe_machine", lambda: ["another machine"])
    [there] = session.run([make_case()], short, store)
    assert here.session != there.session


def test_run_does_not_take_the_result_of_older_code_for_finished(
    executor, store, short, make_case, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = session.run([make_case()], short, store)[0].session
    assert session.run([make_case()], short, store)[0].session == first
    monkeypatch.setattr("steptime.plugins.program_digest", lambda framework: "changed")
    assert session.run([make_case()], short, store)[0].session != first


def test_run_numbers_all_processes_of_a_session(executor, store, short, make_case) -> None:
    """So a result knows how many processes of other cases ran between two of its own."""
    session.run([make_case(1), make_case(2)], short, store)
    numbers = [job.environment["session_process"] for job in executor.jobs]
    assert numbers == [0, 1, 2, 3]


def test_run_tells_later_processes_what_the_first_one_found(
    executor, store, short: Protocol, make_case
) -> None:
    executor.findings = {
        "task": {"metric": "top-1 accuracy", "value": 0.5, "interval": [0.2, 0.8], "samples": 8}
    }
    session.run([make_case(1)], replace(short, processes_least=3, processes_most=3), store)
    first, second, third = executor.jobs
    known = {"task": {"found_by": first.id, **executor.findings["task"]}}
    assert (first.options, second.options, third.options) == ({}, known, known)


def test_gap_seconds_is_positive_for_a_single_case_that_drifts(
    executor, store, short, make_case, monkeypatch
) -> None:
    naps: list[float] = []
    monkeypatch.setattr("steptime.run.session.time.sleep", naps.append)
    monkeypatch.setattr(
        "steptime.analysis.stopping.elapsed_seconds", lambda attempt: 1.0
    )  # a fake takes no time
    rising = iter(range(1, 100))
    calm = executor.measurement

    def measurement(seed: int):
        one, factor = calm(seed), next(rising)
        return replace(one, stamps=[stamp * factor for stamp in one.stamps])

    executor.measurement = measurement
    session.run(
        [make_case()], replace(short, processes_least=6, processes_most=14, target=1e-9), store
    )
    assert naps[:11] == [0.0] * 11 and any(nap > 0 for nap in naps[11:])


def test_run_tries_half_the_batch_if_memory_runs_out(executor, store, short, make_case) -> None:
    executor.scripts |= {64: iter(["out_of_memory"]), 32: iter(["out_of_memory"])}
    protocol = replace(short, batch_halvings=3)
    for _ in range(2):
        records = session.run([make_case(64)], protocol, store)
        found = [(record.case.batch_size, record.status) for record in records]
        assert found == [(64, "out_of_memory"), (32, "out_of_memory"), (16, "ok")]
    assert len(executor.jobs) == 4


def test_run_halves_a_batch_as_often_as_the_plan_says(executor, store, short, make_case) -> None:
    executor.scripts |= {size: iter(["out_of_memory"]) for size in (64, 32)}
    records = session.run([make_case(64)], replace(short, batch_halvings=1), store)
    assert [record.case.batch_size for record in records] == [64, 32]


@pytest.mark.parametrize("cause", ["unsupported", "not_installed", "crashed"])
def test_run_keeps_the_batch_after_other_failures(
    cause: str, executor, store, short, make_case
) -> None:
    executor.scripts[64] = iter([cause] * 2)
    records = session.run([make_case(64)], replace(short, batch_halvings=3), store)
    assert [(record.case.batch_size, record.status) for record in records] == [(64, cause)]


def test_newest_session_is_not_that_of_a_clock_that_was_ahead() -> None:
    later = uuid7()
    attempts = [SimpleNamespace(session=name, plan="p") for name in (f"ffff{later[4:]}", later)]
    newest = session.newest_session(SimpleNamespace(attempts=lambda: attempts), "p")
    assert newest is not None and newest.session == later
