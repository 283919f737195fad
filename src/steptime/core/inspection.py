"""What a program may report besides its steps: stages, operators, memory. Never during timing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol


class Operator(NamedTuple):
    name: str  # in the framework's own words
    calls: int
    seconds: float  # without what it calls


@dataclass(frozen=True)
class StepProfile:
    """Some steps as the framework's own profiler saw them."""

    operators: tuple[Operator, ...]  # of all steps together; what passes between them is one too
    events: list[dict[str, Any]]  # of Chrome's trace format, times in microseconds
    seconds: float  # that all steps took under the profiler
    where: str = "host"  # the clock of the operators: host, or device


@dataclass(frozen=True)
class MemoryAccount:
    """Bytes that are held when a step holds most, by what they are for."""

    held: dict[str, int]
    note: str = ""  # what this framework or mode cannot tell apart


class Inspectable(Protocol):
    """Each of these may be missing from a program, or raise `Unsupported` with the reason."""

    def step_in_stages(self, mark: Callable[[str], None]) -> Any:
        """One step, the same as `step()`, that calls `mark(name)` at the end of each stage."""

    def profile(self, steps: int) -> StepProfile: ...

    def memory_account(self) -> MemoryAccount: ...

    def exchange(self, *, tiny: bool = False) -> int:
        """Several ranks: exchange as a step does, until this rank has the result.

        `tiny` exchanges one number. Returns the bytes of one rank's part. Which library moves
        them is in `facts()` as `exchange_backend`."""


BETWEEN = "(between operators)"
"""The operator that stands for what the host does outside all others."""
IDLE = "(device waits)"


def self_operators(
    events: Sequence[dict[str, Any]], name: Callable[[dict[str, Any]], str]
) -> tuple[Operator, ...]:
    """Operators without what they call, from trace events that include it.

    An event without a name counts for the one around it."""
    calls: dict[str, int] = {}
    times: dict[str, float] = {}
    # For each thread, the end and the name of the events that are open.
    stacks: dict[Any, list[tuple[float, str]]] = {}
    # At the same start, the longer event is the outer one.
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        operator = name(event)
        stack = stacks.setdefault((event.get("pid"), event.get("tid")), [])
        while stack and stack[-1][0] <= event["ts"]:
            stack.pop()
        if not operator:
            continue
        if stack:
            times[stack[-1][1]] -= event["dur"]
        stack.append((event["ts"] + event["dur"], operator))
        calls[operator] = calls.get(operator, 0) + 1
        times[operator] = times.get(operator, 0.0) + event["dur"]
    slowest_first = sorted(times, key=lambda operator: -times[operator])
    return tuple(
        Operator(operator, calls[operator], times[operator] / 1e6) for operator in slowest_first
    )
