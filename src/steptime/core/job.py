"""What a worker is asked to do: the file from the process that asks to the one that measures."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from steptime.core.case import Case
from steptime.core.protocol import Protocol

# A worker stages data under this name and its id; its parent removes what a killed one left.
STAGED_PREFIX = "steptime-data-"


@dataclass(frozen=True, kw_only=True)
class Job:
    """One process. Its id is the journal's name and the attempt's id."""

    id: str
    session: str
    plan: str
    process: int
    case: Case
    protocol: Protocol
    # Facts of the environment that the parent set for this process alone.
    environment: dict[str, Any] = field(default_factory=dict)
    pair: str = ""  # comparisons: both partners of a pair have the same id here
    task: str = "measure"  # a plugin of `tasks`
    options: dict[str, Any] = field(default_factory=dict)  # what the task needs beyond the case
    # Talk with the parent: measure a block for each line on standard input, or report progress.
    turns: bool = False

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Job:
        case = Case.from_dict(values["case"])
        protocol = Protocol.from_dict(values["protocol"])
        return cls(**{**values, "case": case, "protocol": protocol})
