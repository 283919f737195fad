"""The profile of a step: as one sentence, as rows for tables, and which result it belongs to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from steptime.core.format import byte_count, percent
from steptime.core.record import Attempt

TASK = "profile"
# Beyond this perturbation only shares are meaningful: the marks themselves took time.
DISTURBING = 0.02
# Shares below this are not worth a clause.
NOTABLE_SHARE = 0.05
PHASE_NAMES = {
    "forward": "the forward pass",
    "backward": "the backward pass",
    "optimizer": "the optimiser",
    "data": "data",
}
PHASE_ORDER = (
    "data",
    "forward",
    "forward and loss",
    "loss",
    "backward",
    "backward and optimizer",
    "optimizer",
    "other",
)
# Time outside operators.
IDLE_CLASSES = ("framework overhead", "waiting")
OVERHEADS = (*IDLE_CLASSES, "other")


class Share(NamedTuple):
    name: str
    share: float
    amount: float  # seconds of a plain step, or bytes


@dataclass(frozen=True)
class Profile:
    attempt: Attempt
    findings: dict[str, Any]

    @property
    def absent(self) -> dict[str, str]:
        """What could not be profiled, with the reason."""
        reasons: dict[str, str] = self.findings.get("absent", {})
        return reasons

    @property
    def trace(self) -> dict[str, Any] | None:
        trace: dict[str, Any] | None = self._operator_findings.get("trace")
        return trace

    @property
    def _operator_findings(self) -> dict[str, Any]:
        findings: dict[str, Any] = self.findings.get("operators", {})
        return findings

    @property
    def step_seconds(self) -> float | None:
        """Of plain steps in the same process."""
        for section in ("phases", "operators"):
            if section in self.findings:
                return float(self.findings[section]["plain_seconds"])
        return None

    @property
    def phases(self) -> list[Share]:
        """Shares as measured. Times are those shares of a plain step, which no mark disturbs."""
        findings = self.findings.get("phases")
        if not findings:
            return []
        seconds = findings["seconds"]
        total = sum(seconds.values()) or 1.0
        rows = []
        for name in sorted(seconds, key=_phase_position):
            share = seconds[name] / total
            rows.append(Share(name, share, share * findings["plain_seconds"]))
        return rows

    @property
    def classes(self) -> list[Share]:
        findings = self._operator_findings
        rows = []
        for name, share in findings.get("classes", {}).items():
            rows.append(Share(name, float(share), float(share) * findings["plain_seconds"]))
        return rows

    @property
    def operators(self) -> list[dict[str, Any]]:
        findings = self._operator_findings
        rows = []
        for operator in findings.get("operators", []):
            rows.append({**operator, "seconds": operator["share"] * findings["plain_seconds"]})
        return rows

    @property
    def memory(self) -> list[Share]:
        """What the memory holds, the largest first."""
        held = self.findings.get("memory", {}).get("held_bytes", {})
        total = sum(held.values()) or 1
        largest_first = sorted(held.items(), key=lambda item: -item[1])
        return [Share(name, size / total, size) for name, size in largest_first if size]

    @property
    def sentence(self) -> str:
        """Empty if nothing was profiled."""
        clauses = [*self._class_clauses(), *self._phase_clauses(), *self._memory_clauses()]
        if not clauses:
            return ""
        text = "; ".join(clauses)
        return f"{text[:1].upper()}{text[1:]}."

    @property
    def remarks(self) -> list[str]:
        """How far the numbers can be trusted."""
        remarks = []
        phases = self.findings.get("phases")
        if phases and "perturbation" in phases:
            change = phases["perturbation"]
            limit = ": only the shares are meaningful" if abs(change) > DISTURBING else ""
            percentage = _signed_percent(change)
            remarks.append(f"Marking the phases changed the step by {percentage}{limit}.")
        if phases and "range_seconds" in phases:
            remarks.append(
                "This step is a single program: its phases are differences between programs, "
                "over 5 turns of each."
            )
        remarks += self._operator_remarks()
        note = self.findings.get("memory", {}).get("note")
        if note:
            remarks.append(f"Memory: {note}.")
        return remarks

    def _operator_remarks(self) -> list[str]:
        operators = self.findings.get("operators")
        if not operators:
            return []
        change = _signed_percent(operators["perturbation"])
        remarks = [f"Tracing the operators changed the step by {change}."]
        other = operators["classes"].get("other", 0.0)
        if other > NOTABLE_SHARE:
            remarks.append(f"{percent(other)} of the time is in operators of no known class.")
        return remarks

    def _class_clauses(self) -> list[str]:
        named = [row for row in self.classes if row.name not in OVERHEADS]
        if not named:
            return []
        clauses = [f"{percent(named[0].share)} of a step is {named[0].name}"]
        if len(named) > 1 and named[1].share >= NOTABLE_SHARE:
            clauses[0] += f", {percent(named[1].share)} {named[1].name}"
        idle = sum(row.share for row in self.classes if row.name in IDLE_CLASSES)
        if idle >= 2 * NOTABLE_SHARE:
            clauses.append(f"{percent(idle)} is spent between operators")
        return clauses

    def _phase_clauses(self) -> list[str]:
        if len(self.phases) < 2:
            return []
        longest = max(self.phases, key=lambda phase: phase.share)
        name = PHASE_NAMES.get(longest.name, longest.name)
        return [f"{name} takes {percent(longest.share)}"]

    def _memory_clauses(self) -> list[str]:
        if not self.memory:
            return []
        size = byte_count(int(sum(row.amount for row in self.memory)))
        largest = self.memory[0]
        return [f"at most {size} are held, {percent(largest.share)} of it {largest.name}"]


def _phase_position(name: str) -> int:
    return PHASE_ORDER.index(name) if name in PHASE_ORDER else 0


def read_profile(attempt: Attempt) -> Profile | None:
    """None if the attempt is no profile, or an unreadable one: journals may be damaged."""
    findings = attempt.findings.get(TASK)
    if attempt.task != TASK or not isinstance(findings, dict):
        return None
    profile = Profile(attempt, findings)
    try:
        # Every view must work, so that no page fails over a journal from elsewhere.
        _ = profile.sentence, profile.remarks, profile.operators, profile.trace
        dict(profile.absent)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None
    return profile


def newest_profile(run: Attempt, attempts: Iterable[Attempt]) -> Profile | None:
    """The latest profile of the same configuration on the same machine."""
    configuration = _configuration(run)
    newest = None
    for attempt in attempts:
        if _configuration(attempt) == configuration:
            newest = read_profile(attempt) or newest
    return newest


def _configuration(attempt: Attempt) -> tuple[str, Any, Any]:
    key = replace(attempt.case, trial=0, timing="stream").key
    return key, attempt.machine.get("fingerprint"), attempt.network.get("fingerprint")


def _signed_percent(change: float) -> str:
    return f"{100 * change:+.1f} %".replace("-", "−")
