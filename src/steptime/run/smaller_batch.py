"""What is tried instead if a batch was too large for the memory, and for no other reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.core.protocol import Protocol
from steptime.core.record import Attempt


def with_smaller_batches(
    cases: Iterable[Case], attempts: Mapping[str, Sequence[Attempt]], protocol: Protocol
) -> dict[str, Case]:
    """The cases by key, and for each that ran out of memory the same with half the batch.

    The failure stays what it is: the smaller batch is a case of its own."""
    planned = {case.key: case for case in cases}
    extended = dict(planned)
    for case in planned.values():
        for _ in range(protocol.batch_halvings):
            if case.batch_size < 2 or not _ran_out_of_memory(attempts.get(case.key, ())):
                break
            case = replace(case, batch_size=case.batch_size // 2)
            extended.setdefault(case.key, case)
    return extended


def _ran_out_of_memory(attempts: Sequence[Attempt]) -> bool:
    causes = [attempt.failure.cause for attempt in attempts if attempt.failure is not None]
    return Cause.OUT_OF_MEMORY in causes
