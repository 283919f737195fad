"""Whether a case is tried again after a failure: the one rule for runs, comparisons and Slurm."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum, auto

from steptime.core.cause import Cause


class Retry(Enum):
    """When a case is tried again after a failure."""

    NOW = auto()  # in the same run: it may have been an accident
    NEXT_RUN = auto()  # something outside the case has to change first
    NEVER = auto()


RETRY = {
    Cause.UNSUPPORTED: Retry.NEVER,
    Cause.NOT_INSTALLED: Retry.NEXT_RUN,
    Cause.OUT_OF_MEMORY: Retry.NEVER,
    Cause.UNREADABLE: Retry.NEXT_RUN,
    Cause.NO_SPACE: Retry.NEXT_RUN,
    Cause.TIMED_OUT: Retry.NEXT_RUN,
    Cause.CRASHED: Retry.NOW,
    Cause.CANCELLED: Retry.NEXT_RUN,
    Cause.NODE_FAILED: Retry.NEXT_RUN,
    Cause.PREEMPTED: Retry.NEXT_RUN,
    Cause.REQUEUED: Retry.NEXT_RUN,
}
MOST_FAILURES = 2  # of one case in one run


def gives_up(causes: Collection[Cause]) -> bool:
    """Whether a run leaves a case alone after it has failed for these causes in this run."""
    if len(causes) >= MOST_FAILURES:
        return True
    return any(RETRY[cause] is not Retry.NOW for cause in causes)


def is_final(cause: Cause) -> bool:
    """The same case would fail the same way again, so no later run tries it either."""
    return RETRY[cause] is Retry.NEVER
