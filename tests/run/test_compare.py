from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from factories import kept_blocks
from steptime.core.case import Case
from steptime.core.errors import SteptimeError
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.core.record import Attempt
from steptime.run.compare import Refused, compare, comparison_hash
from steptime.run.session import plan_hash
from steptime.store.folder import FolderStore

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("misbehaving", "no_orphans")]
MakeCase = Callable[..., Case]


@pytest.fixture
def three_pairs(short: Protocol) -> Protocol:
    return replace(short, pair_looks=(3,), pair_blocks=2)


def test_compare_gives_both_partners_the_same_pair_id(
    store: FolderStore, three_pairs: Protocol, make_case: MakeCase
) -> None:
    compared = compare((make_case(), make_case(trial=1)), three_pairs, store)
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
    compared = compare((make_case(), make_case()), three_pairs, store)
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
        (make_case(framework="selfish"), make_case(framework="selfish")), three_pairs, store
    )
    order = [
        attempt.process % 2 for attempt in sorted(store.attempts(), key=lambda one: one.started)[2:]
    ]
    assert order == [0, 1, 1, 0, 0, 1] and compared.comparison.units == 3


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
    compared = compare(cases, three_pairs, store)
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
    first, second = (compare((make_case(), make_case(trial=1)), once, store) for _ in range(2))
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
