from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.core.protocol import Protocol
from steptime.core.record import Attempt, Failure
from steptime.run.smaller_batch import with_smaller_batches


@pytest.fixture
def lost(attempt_of: Callable[..., Attempt]) -> Callable[[Case], dict[str, list[Attempt]]]:
    """A case whose memory ran out."""

    def make(case: Case) -> dict[str, list[Attempt]]:
        failure = Failure(cause=Cause.OUT_OF_MEMORY, reason="too large")
        return {
            case.key: [
                replace(attempt_of([1, 1], blocks=1), case=case, measurement=None, failure=failure)
            ]
        }

    return make


def sizes(cases: list[Case], tried: dict[str, list[Attempt]], halvings: int) -> list[int]:
    return [
        case.batch_size
        for case in with_smaller_batches(cases, tried, Protocol(batch_halvings=halvings)).values()
    ]


def test_with_smaller_batches_rounds_down_to_one_sample(
    lost: Callable[..., dict[str, list[Attempt]]],
) -> None:
    case = Case(workload="lenet5", batch_size=3)
    one = replace(case, batch_size=1)
    assert sizes([case], lost(case), 5) == [3, 1]
    assert sizes([case], {**lost(case), **lost(one)}, 5) == [3, 1]


def test_with_smaller_batches_has_planned_cases_once(
    lost: Callable[..., dict[str, list[Attempt]]],
) -> None:
    cases = [Case(workload="lenet5", batch_size=size) for size in (64, 32)]
    assert sizes(cases, lost(cases[0]), 1) == [64, 32]


def test_with_smaller_batches_is_off_by_default(
    lost: Callable[..., dict[str, list[Attempt]]],
) -> None:
    case = Case(workload="lenet5")
    assert sizes([case], lost(case), 0) == [32]
