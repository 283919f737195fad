"""The causes of failure and the one rule by which a case is tried again."""

from __future__ import annotations

import pytest

from steptime.core.cause import Cause
from steptime.core.retry import RETRY, gives_up, is_final


def test_retry_rule_covers_every_cause() -> None:
    assert set(RETRY) == set(Cause)


@pytest.mark.parametrize("cause", [Cause.UNSUPPORTED, Cause.OUT_OF_MEMORY])
def test_is_final_for_what_would_only_repeat(cause: Cause) -> None:
    assert is_final(cause)
    assert gives_up([cause])


def test_gives_up_after_a_second_accident() -> None:
    assert not gives_up([Cause.CRASHED])
    assert gives_up([Cause.CRASHED, Cause.CRASHED])


@pytest.mark.parametrize(
    "cause",
    [Cause.NOT_INSTALLED, Cause.UNREADABLE, Cause.NO_SPACE, Cause.CANCELLED, Cause.TIMED_OUT],
)
def test_gives_up_at_once_on_what_only_the_next_run_may_pass(cause: Cause) -> None:
    assert gives_up([cause])
    assert not is_final(cause)


def test_gives_up_never_before_a_failure() -> None:
    assert not gives_up([])


def test_cause_is_stored_as_its_text() -> None:
    assert f"{Cause.OUT_OF_MEMORY}" == "out_of_memory" == Cause.OUT_OF_MEMORY.value
