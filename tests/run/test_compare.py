from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from factories import kept_blocks, make_attempt
from steptime.core.case import Case
from steptime.core.errors import SteptimeError
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.core.record import Attempt
from steptime.run.compare import PairedComparison, Refused, compare, comparison_hash
from steptime.run.session import plan_hash
from steptime.run.watch import NullWatch
from steptime.store.folder import FolderStore

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("misbehaving", "no_orphans")]
MakeCase = Callable[..., Case]
LOADED = "so short a run may be invalid on a loaded machine"


@pytest.fixture
def three_pairs(short: Protocol) -> Protocol:
    return replace(short, pair_looks=(3,), pair_blocks=2)


def test_compare_gives_both_partners_the_same_pair_id(
    store: FolderStore, three_pairs: Protocol, make_case: MakeCase
) -> None:
    compared = compare((make_case(), make_case(trial=1)), three_pairs, store, force=LOADED)
    assert compared.comparison.units == 3 == len(compared.pairs)
    for a, b in compared.pairs:
        assert a.pair == b.pair and (a.case.trial, b.case.trial) == (0, 1)
        assert a.measurement is not None and len(kept_blocks(a.measurement)) == 2
    assert len({a.pair for a, _ in compared.pairs}) == 3
    assert {attempt.id for attempt in store.attempts()} == {
        one.id for pair in compared.pairs for one in pair
    }


def test_compare_accepts_the_same_case_twice(
    store: FolderStore, three_pairs: Protocol, make_case: MakeCase
) -> None:
    compared = compare((make_case(), make_case()), three_pairs, store, force=LOADED)
    assert [(a.process, b.process) for a, b in compared.pairs] == [(0, 1), (2, 3), (4, 5)]


def test_compare_refuses_different_work_before_it_runs(
    store: FolderStore, three_pairs: Protocol, make_case: MakeCase
) -> None:
    with pytest.raises(Refused, match="batch_size differs") as refused:
        compare((make_case(4), make_case(8)), three_pairs, store)
    assert len(refused.value.reasons) == 1 and store.attempts() == []


def test_compare_with_force_remarks_the_difference(
    store: FolderStore, three_pairs: Protocol, make_case: MakeCase
) -> None:
    once = replace(three_pairs, pair_looks=(1,))
    compared = compare((make_case(4), make_case(8)), once, store, force="curious")
    assert (
        "curious" in compared.comparison.remarks[-1]
        and "batch_size" in compared.comparison.remarks[-1]
    )


def test_compare_refuses_a_step_that_does_nothing(
    store: FolderStore, three_pairs: Protocol, make_case: MakeCase
) -> None:
    once = replace(three_pairs, pair_looks=(1,))
    cases = (make_case(framework="lies"), make_case(framework="lies", trial=1))
    with pytest.raises(Refused, match=r"is invalid: implausible.*FLOP/s"):
        compare(cases, once, store)
    forced = compare(cases, once, store, force="to see it").comparison
    assert forced.verdict.outcome == "inconclusive"
    assert any("implausible" in remark for remark in forced.remarks)


@pytest.mark.parametrize("broken", [0, 1])
def test_compare_ends_after_a_second_crash(
    broken: int, store: FolderStore, three_pairs: Protocol, make_case: MakeCase
) -> None:
    cases = [make_case(), make_case()]
    cases[broken] = make_case(framework="segfault")
    with pytest.raises(SteptimeError, match="killed by SIGSEGV"):
        compare((cases[0], cases[1]), three_pairs, store, force="to see it fail")
    causes = [attempt.failure.cause for attempt in store.attempts() if attempt.failure]
    assert causes.count("crashed") == 2 and set(causes) <= {"crashed", "cancelled"}


def test_compare_alternates_cases_that_do_not_fit_together(
    store: FolderStore, three_pairs: Protocol, make_case: MakeCase
) -> None:
    compared = compare(
        (make_case(framework="selfish"), make_case(framework="selfish")),
        three_pairs,
        store,
        force=LOADED,
    )
    ran = sorted(store.attempts(), key=lambda attempt: attempt.started)[2:]
    sides = [attempt.process % 2 for attempt in ran]
    assert [sorted(sides[i : i + 2]) for i in (0, 2, 4)] == [[0, 1]] * 3
    assert compared.comparison.units == 3


class OrderRecorder:
    """An executor that measures nothing and notes which side came first in each pair."""

    def __init__(self) -> None:
        self.sides: list[int] = []

    def run(self, job: Job, store: FolderStore) -> Attempt:
        self.sides.append(job.process % 2)
        return make_attempt([10**6] * 40, process=job.process, pair=job.pair)


def test_paired_comparison_draws_the_order_of_each_pair(
    store: FolderStore, three_pairs: Protocol, make_case: MakeCase
) -> None:
    recorder = OrderRecorder()
    comparison = PairedComparison(
        cases=(make_case(), make_case()),
        protocol=replace(three_pairs, pair_looks=(1000,)),
        store=store,
        watch=NullWatch(),
        executor=recorder,  # type: ignore[arg-type]
        plan="p",
        session="s",
        side_by_side=False,
    )
    for _ in range(200):
        comparison.measure_pair()
    first = recorder.sides[::2]
    repeats = sum(a == b for a, b in pairwise(first))
    # Neither side leads, and the order of a pair does not follow from the one before.
    assert 75 < sum(first) < 125 and 75 < repeats < 125


class Impatient:
    """Interrupts when the first worker of the given pair is about to start."""

    def __init__(self, process: int) -> None:
        self.process = process

    def on_start(self, job: Job, done: int, expected: int) -> None:
        if job.process // 2 == self.process // 2:
            raise KeyboardInterrupt

    def on_finish(self, attempt: Attempt) -> None: ...


def test_compare_continues_an_interrupted_comparison(
    store: FolderStore, three_pairs: Protocol, make_case: MakeCase
) -> None:
    cases = (make_case(), make_case(trial=1))
    with pytest.raises(KeyboardInterrupt):
        compare(cases, three_pairs, store, watch=Impatient(4))
    before = {attempt.id for attempt in store.attempts()}
    compared = compare(cases, three_pairs, store, force=LOADED)
    assert len(before) == 4 < len(store.attempts()) == 6
    assert before < {one.id for pair in compared.pairs for one in pair}
    assert (
        len({one.session for pair in compared.pairs for one in pair}) == 1
        and compared.comparison.units == 3
    )


def test_compare_measures_a_finished_comparison_anew(
    store: FolderStore, three_pairs: Protocol, make_case: MakeCase
) -> None:
    once = replace(three_pairs, pair_looks=(1,))
    first, second = (
        compare((make_case(), make_case(trial=1)), once, store, force=LOADED) for _ in range(2)
    )
    assert first.pairs[0][0].session != second.pairs[0][0].session


def test_comparison_hash_depends_on_the_order(short: Protocol, make_case: MakeCase) -> None:
    a, b = make_case(), make_case(trial=1)
    assert (
        len(
            {
                comparison_hash((a, b), short),
                comparison_hash((b, a), short),
                plan_hash((a, b), short),
            }
        )
        == 3
    )
