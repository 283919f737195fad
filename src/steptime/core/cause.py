"""Why an attempt failed, and whether another attempt at the same case is worth starting."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum, StrEnum, auto


class Cause(StrEnum):
    """Stored in journals as its text, so a value never changes."""

    UNSUPPORTED = "unsupported"
    NOT_INSTALLED = "not_installed"
    OUT_OF_MEMORY = "out_of_memory"
    NO_SPACE = "no_space"  # the disk of the store or of a staging tier is full
    TIMED_OUT = "timed_out"
    CRASHED = "crashed"
    CANCELLED = "cancelled"
    # The following come from Slurm.
    NODE_FAILED = "node_failed"
    PREEMPTED = "preempted"
    REQUEUED = "requeued"

    @property
    def is_final(self) -> bool:
        """The same case would fail the same way again, so no later run tries it either."""
        return RETRY[self] is Retry.NEVER


class Retry(Enum):
    """When a case is tried again after a failure."""

    NOW = auto()  # in the same run: it may have been an accident
    NEXT_RUN = auto()  # something outside the case has to change first
    NEVER = auto()


RETRY = {
    Cause.UNSUPPORTED: Retry.NEVER,
    Cause.NOT_INSTALLED: Retry.NEXT_RUN,
    Cause.OUT_OF_MEMORY: Retry.NEVER,
    Cause.NO_SPACE: Retry.NEXT_RUN,
    Cause.TIMED_OUT: Retry.NOW,
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
