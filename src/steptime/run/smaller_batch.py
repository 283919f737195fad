"""What is tried instead where a batch was too large for the memory, and for no other reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.core.protocol import Protocol
from steptime.core.record import Attempt


def with_smaller(
    cases: Iterable[Case], tried: Mapping[str, Sequence[Attempt]], protocol: Protocol
) -> dict[str, Case]:
    """By key, the cases and for each whose memory ran out the same with half the batch. What failed stays what it is:
    the smaller one is a case of its own."""
    wanted = {case.key: case for case in cases}
    found = dict(wanted)
    for case in wanted.values():
        for _ in range(protocol.batch_halvings):
            if case.batch_size < 2 or not _ran_out(tried.get(case.key, ())):
                break
            case = replace(case, batch_size=case.batch_size // 2)
            found.setdefault(case.key, case)
    return found


def _ran_out(tried: Sequence[Attempt]) -> bool:
    return any(
        attempt.failure is not None and attempt.failure.cause == Cause.OUT_OF_MEMORY
        for attempt in tried
    )
