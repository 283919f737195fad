"""Certificates: who computed which network rightly, at which precision, in which mode and where; and whether one covers
a piece of work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from steptime.core.case import Case
from steptime.core.record import Attempt

TASK = "certify"
COVERED = {"training": ("training", "forward", "inference"), "inference": ("inference",)}
SAME = ("framework", "precision", "mode", "layout")


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What one worker found when it compared a framework's lowering with the reference."""

    id: str
    case: Case
    fingerprint: str
    version: str  # of the framework
    device: str  # "cpu", or the GPU's name
    covers: str  # training, with inference in it, or inference alone
    passed: bool
    items: tuple[dict[str, Any], ...]
    steps: int = 20  # of the trajectory

    @property
    def name(self) -> str:
        """What `steptime certify` and `compare` call it."""
        return self.id[-8:]

    @property
    def worst(self) -> dict[str, Any]:
        """The item nearest to its bound, or farthest beyond it."""
        return max(
            self.items, key=lambda item: float("inf") if item["share"] is None else item["share"]
        )

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "case": self.case.to_dict(), "items": list(self.items)}


def certificate(attempt: Attempt) -> Certificate | None:
    found = attempt.findings.get("certificate")
    if found is None:
        return None
    return Certificate(
        id=attempt.id,
        case=attempt.case,
        fingerprint=attempt.network["fingerprint"],
        version=found["version"],
        device=device_kind(attempt) or attempt.case.device,
        covers=found["covers"],
        passed=found["passed"],
        items=tuple(found["items"]),
        steps=found.get("steps", 20),
    )


def certificates(attempts: Iterable[Attempt]) -> list[Certificate]:
    """In the order of the attempts: oldest first."""
    return [found for attempt in attempts if (found := certificate(attempt)) is not None]


def device_kind(attempt: Attempt) -> str | None:
    """None: the attempt does not tell which GPU it was."""
    if attempt.case.device == "cpu":
        return "cpu"
    boards, index = attempt.machine.get("gpus") or [], int(attempt.case.device.partition(":")[2])
    return boards[index]["name"] if index < len(boards) else None


def covering(attempt: Attempt, known: Sequence[Certificate]) -> Certificate | None:
    """The newest that is about this work, passed or not. What the attempt does not tell yet must not contradict."""
    return next((one for one in reversed(known) if _is_about(one, attempt)), None)


def certified(attempt: Attempt, known: Sequence[Certificate]) -> str | None:
    """The id of the certificate that proves this work right."""
    found = covering(attempt, known)
    return found.id if found and found.passed else None


def _is_about(one: Certificate, attempt: Attempt) -> bool:
    case = attempt.case
    own_rule = case.phase != "training" or one.case.optimizer == case.optimizer
    return (
        one.fingerprint == attempt.network.get("fingerprint")
        and all(getattr(one.case, name) == getattr(case, name) for name in SAME)
        and case.phase in COVERED[one.covers]
        and own_rule
        and one.version == attempt.software.get(case.framework, one.version)
        and one.device == (device_kind(attempt) or one.device)
        and (one.case.device == "cpu") == (case.device == "cpu")
    )


def uncertified(a: Attempt, b: Attempt, known: Sequence[Certificate]) -> str | None:
    """Why two frameworks may not be compared; None when both are proved to compute the same network."""
    names = (a.case.framework, b.case.framework)
    words = f"{' and '.join(names)} are different frameworks, and"
    for side in (a, b):
        found = covering(side, known)
        if found is None:
            return f"{words} no certificate covers {_described(side)}; `{_command(a.case, b.case)}` makes one"
        if not found.passed:
            item = found.worst
            return f"{words} {_described(side)} failed its certificate {found.name}: {item['item']}, {item['where']}"
    return None


def _command(*cases: Case) -> str:
    flags = [
        f" --{name} {word}"
        for name, default in (
            ("framework", ""),
            ("mode", "eager"),
            ("precision", "fp32"),
            ("device", "cpu"),
        )
        if (found := dict.fromkeys(getattr(case, name) for case in cases)) != {default: None}
        for word in found
    ]
    return f"steptime certify {cases[0].workload}{''.join(flags)}"


def remark(a: Attempt, b: Attempt, known: Sequence[Certificate]) -> str:
    names = [found.name for side in (a, b) if (found := covering(side, known))]
    return f"certified: both compute the same network (certificates {' and '.join(names)})"


def _described(attempt: Attempt) -> str:
    case = attempt.case
    version = attempt.software.get(case.framework, "")
    words = [
        case.framework,
        version,
        case.mode,
        case.precision,
        case.layout if case.layout != "nchw" else "",
    ]
    return " ".join(
        word
        for word in [*words, "on", device_kind(attempt) or case.device, "for", case.phase]
        if word
    )
