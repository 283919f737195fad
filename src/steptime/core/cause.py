"""Why an attempt failed. What happens next is decided in `core/retry.py`."""

from __future__ import annotations

from enum import StrEnum


class Cause(StrEnum):
    """Stored in journals as its text, so a value never changes."""

    UNSUPPORTED = "unsupported"
    NOT_INSTALLED = "not_installed"
    OUT_OF_MEMORY = "out_of_memory"
    UNREADABLE = "unreadable"  # the user's file of the network or of its weights
    NO_SPACE = "no_space"  # the disk of the store or of a staging tier is full
    TIMED_OUT = "timed_out"
    CRASHED = "crashed"
    CANCELLED = "cancelled"
    # The following come from Slurm.
    NODE_FAILED = "node_failed"
    PREEMPTED = "preempted"
    REQUEUED = "requeued"
