"""What a worker is asked to do: CASE.json, the interface between the process that asks and the one that measures."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from steptime.core.case import Case
from steptime.core.protocol import Protocol


@dataclass(frozen=True, kw_only=True)
class Job:
    """One process. Its id is the journal's name and the attempt's id."""

    id: str
    session: str
    plan: str
    process: int
    case: Case
    protocol: Protocol
    environment: dict[str, Any] = field(
        default_factory=dict
    )  # what the parent set for this process alone
    pair: str = ""  # live comparisons: both partners carry the same word
    task: str = "measure"  # a name on the shelf `tasks`
    options: dict[str, Any] = field(default_factory=dict)  # what the task needs beyond the case
    turns: bool = False  # stay after warm-up and measure a block whenever told to on standard input

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "case": self.case.to_dict(), "protocol": self.protocol.to_dict()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Job:
        case, protocol = Case.from_dict(values["case"]), Protocol.from_dict(values["protocol"])
        return cls(**{**values, "case": case, "protocol": protocol})
