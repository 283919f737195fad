"""What a look inside a step found: in one sentence, in rows for tables, and whose step it was."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from steptime.core.format import byte_count, percent
from steptime.core.record import Attempt

TASK = "profile"
DISTURBING = 0.02  # beyond it only shares are meant: the marks themselves took time
MUCH_OTHER = 0.05
WORDS = {
    "forward": "the forward pass",
    "backward": "the backward pass",
    "optimizer": "the optimiser",
    "data": "data",
}
ORDER = (
    "data",
    "forward",
    "forward and loss",
    "loss",
    "backward",
    "backward and optimizer",
    "optimizer",
    "other",
)
OVERHEADS = ("framework overhead", "waiting", "other")


class Part(NamedTuple):
    name: str
    share: float
    amount: float  # seconds of a plain step, or bytes


@dataclass(frozen=True)
class Profile:
    attempt: Attempt
    found: dict[str, Any]

    @property
    def absent(self) -> dict[str, str]:
        told: dict[str, str] = self.found.get("absent", {})
        return told

    @property
    def trace(self) -> dict[str, Any] | None:
        told: dict[str, Any] | None = self.found.get("operators", {}).get("trace")
        return told

    @property
    def step_seconds(self) -> float | None:
        """Of plain steps in the same process."""
        for part in ("phases", "operators"):
            if part in self.found:
                return float(self.found[part]["plain_seconds"])
        return None

    @property
    def phases(self) -> list[Part]:
        """Shares as measured; times are those shares of a plain step, which no mark disturbs."""
        told = self.found.get("phases")
        if not told:
            return []
        total = sum(told["seconds"].values()) or 1.0
        ordered = sorted(
            told["seconds"].items(),
            key=lambda pair: ORDER.index(pair[0]) if pair[0] in ORDER else 0,
        )
        return [Part(name, s / total, s / total * told["plain_seconds"]) for name, s in ordered]

    @property
    def classes(self) -> list[Part]:
        told = self.found.get("operators", {})
        shares = told.get("classes", {})
        return [
            Part(name, float(share), float(share) * told["plain_seconds"])
            for name, share in shares.items()
        ]

    @property
    def operators(self) -> list[dict[str, Any]]:
        told = self.found.get("operators", {})
        return [
            {**one, "seconds": one["share"] * told["plain_seconds"]}
            for one in told.get("operators", [])
        ]

    @property
    def memory(self) -> list[Part]:
        held = self.found.get("memory", {}).get("held_bytes", {})
        total = sum(held.values()) or 1
        ordered = sorted(held.items(), key=lambda pair: -pair[1])
        return [Part(name, size / total, size) for name, size in ordered if size]

    @property
    def sentence(self) -> str:
        clauses = [*self._of_classes(), *self._of_phases(), *self._of_memory()]
        return "; ".join(clauses)[:1].upper() + "; ".join(clauses)[1:] + "." if clauses else ""

    @property
    def remarks(self) -> list[str]:
        """How far the numbers can be trusted."""
        found = []
        phases, operators = self.found.get("phases"), self.found.get("operators")
        if phases and "perturbation" in phases:
            change = phases["perturbation"]
            limit = ": only the shares are meant" if abs(change) > DISTURBING else ""
            found.append(f"Marking the phases changed the step by {_signed(change)}{limit}.")
        if phases and "range_seconds" in phases:
            found.append(
                "This step is one piece: its phases are differences between programs, over 5 turns of each."
            )
        if operators:
            found.append(
                f"Watching the operators changed the step by {_signed(operators['perturbation'])}."
            )
            if (other := operators["classes"].get("other", 0.0)) > MUCH_OTHER:
                found.append(
                    f"{percent(other)} of the time is in operators that the table of classes does not know."
                )
        if note := self.found.get("memory", {}).get("note"):
            found.append(f"Memory: {note}.")
        return found

    def _of_classes(self) -> list[str]:
        named = [part for part in self.classes if part.name not in OVERHEADS]
        if not named:
            return []
        clauses = [f"{percent(named[0].share)} of a step is {named[0].name}"]
        if len(named) > 1 and named[1].share >= MUCH_OTHER:
            clauses[0] += f", {percent(named[1].share)} {named[1].name}"
        spent = sum(part.share for part in self.classes if part.name in OVERHEADS[:2])
        if spent >= 2 * MUCH_OTHER:
            clauses.append(f"{percent(spent)} is spent between operators")
        return clauses

    def _of_phases(self) -> list[str]:
        longest = max(self.phases, key=lambda part: part.share, default=None)
        if longest is None or len(self.phases) < 2:
            return []
        return [f"{WORDS.get(longest.name, longest.name)} takes {percent(longest.share)}"]

    def _of_memory(self) -> list[str]:
        if not self.memory:
            return []
        size = sum(part.amount for part in self.memory)
        return [
            f"at most {byte_count(int(size))} are held, {percent(self.memory[0].share)} of it {self.memory[0].name}"
        ]


def profile(attempt: Attempt) -> Profile | None:
    """None: it is no look inside, or makes no sense; journals come from elsewhere too."""
    found = attempt.findings.get(TASK)
    if attempt.task != TASK or not isinstance(found, dict):
        return None
    made = Profile(attempt, found)
    try:
        _ = made.sentence, made.remarks, made.operators, made.trace, dict(made.absent)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None
    return made


def newest_of(run: Attempt, attempts: Iterable[Attempt]) -> Profile | None:
    """The latest look inside the same configuration on the same machine."""
    fitting = [
        one for one in attempts if _configuration(one) == _configuration(run) and profile(one)
    ]
    return profile(fitting[-1]) if fitting else None


def _configuration(attempt: Attempt) -> tuple[str, Any, Any]:
    key = replace(attempt.case, trial=0, timing="stream").key
    return key, attempt.machine.get("fingerprint"), attempt.network.get("fingerprint")


def _signed(change: float) -> str:
    return f"{100 * change:+.1f} %".replace("-", "−")
