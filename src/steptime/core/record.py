"""A case with what became of it: measurements, or a failure with its cause."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.core.measurement import Measurement, RawSamples
from steptime.core.protocol import Protocol

OUTPUT_LINES = 40  # of a failed process are kept


@dataclass(frozen=True, kw_only=True)
class Failure:
    cause: Cause
    reason: str
    output: str = ""  # the end of what the process printed

    def to_dict(self) -> dict[str, str]:
        return {"cause": self.cause.value, "reason": self.reason, "output": self.output}

    @classmethod
    def from_dict(cls, values: dict[str, str]) -> Failure:
        return cls(
            cause=Cause(values["cause"]),
            reason=values["reason"],
            output=values.get("output", ""),
        )


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One process: one journal file. It did its task, or it failed."""

    id: str
    session: str
    plan: str  # hash of the plan's cases and protocol: a second run with the same continues it
    process: int  # its number in the case's sequence of processes
    case: Case
    protocol: Protocol
    started: str
    machine: dict[str, Any]
    software: dict[str, Any]
    network: dict[str, Any]  # fingerprint, parameters, FLOPs: what the work was
    environment: dict[str, Any]  # hash seed, padding, threads, allocator variables
    # Digest of the code that made the program; empty if it was not recorded.
    program: str = ""
    pair: str = ""  # comparisons: both partners of a pair have the same id here
    ended: str = ""
    task: str = "measure"
    measurement: Measurement | None = None
    findings: dict[str, Any] = field(default_factory=dict)  # of the task, besides a measurement
    failure: Failure | None = None
    # Of a failed attempt: samples that it wrote before it failed. No statistic uses them.
    unused_samples: RawSamples | None = None


@dataclass(frozen=True, kw_only=True)
class Record:
    """All attempts at one case in one session."""

    attempts: tuple[Attempt, ...] = field(default_factory=tuple)

    @property
    def case(self) -> Case:
        return self.attempts[0].case

    @property
    def session(self) -> str:
        return self.attempts[0].session

    @property
    def last(self) -> Attempt:
        return self.attempts[-1]

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        return tuple(a.measurement for a in self.attempts if a.measurement is not None)

    @property
    def failures(self) -> tuple[Failure, ...]:
        return tuple(a.failure for a in self.attempts if a.failure is not None)

    @property
    def accuracy(self) -> dict[str, Any] | None:
        """The accuracy loss of the precision, by the first process that has it.

        It is deterministic, so one process is enough."""
        return next(iter(self._accuracies()), None)

    @property
    def accuracy_differs(self) -> bool:
        """Whether processes disagree, which is worth a note: something is random after all."""
        accuracies = self._accuracies()
        return any(accuracy != accuracies[0] for accuracy in accuracies)

    def _accuracies(self) -> list[dict[str, Any]]:
        measured = [attempt for attempt in self.attempts if attempt.measurement]
        return [
            attempt.findings["accuracy"] for attempt in measured if "accuracy" in attempt.findings
        ]

    @property
    def task(self) -> dict[str, Any] | None:
        """The task's metric in full precision, by the first process that has it."""
        for attempt in self.attempts:
            if attempt.measurement is not None and "task" in attempt.findings:
                task: dict[str, Any] = attempt.findings["task"]
                return task
        return None

    @property
    def status(self) -> str:
        if self.measurements:
            return "ok"
        return self.failures[-1].cause if self.failures else Cause.CRASHED
