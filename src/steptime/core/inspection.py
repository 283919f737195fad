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
    where: str = "host"  # whose time the operators' is: host, or device


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
        """Of several ranks: the step's exchange alone, or `tiny` one number's, until this rank has the result. The
        bytes of one rank's part. Which library moves them is in `facts()` as `exchange_backend`."""


BETWEEN = "(between operators)"
"""The operator that stands for what the host does outside all others."""
IDLE = "(device waits)"


def self_operators(
    events: Sequence[dict[str, Any]], name: Callable[[dict[str, Any]], str]
) -> tuple[Operator, ...]:
    """Trace events, whose time includes what lies inside them on the same thread, as operators by themselves.
    An event without a name counts for the one around it."""
    calls: dict[str, int] = {}
    times: dict[str, float] = {}
    stacks: dict[Any, list[tuple[float, str]]] = {}
    for event in sorted(events, key=lambda one: (one["ts"], -one["dur"])):
        stack, word = stacks.setdefault((event.get("pid"), event.get("tid")), []), name(event)
        while stack and stack[-1][0] <= event["ts"]:
            stack.pop()
        if not word:
            continue
        if stack:
            times[stack[-1][1]] -= event["dur"]
        stack.append((event["ts"] + event["dur"], word))
        calls[word] = calls.get(word, 0) + 1
        times[word] = times.get(word, 0.0) + event["dur"]
    return tuple(
        Operator(word, calls[word], times[word] / 1e6)
        for word in sorted(times, key=lambda w: -times[w])
    )
