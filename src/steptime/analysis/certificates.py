"""Certificates: which framework computed which network correctly, at which precision, in which mode
and on which device; and whether a certificate covers an attempt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from steptime.core.case import Case
from steptime.core.record import Attempt

TASK = "certify"
# Items that must be proved, in the certificate's precision or, except for outputs, in fp64.
REQUIRED = {
    "training": ("outputs", "gradients", "optimizer step", "statistics", "forward"),
    "inference": ("outputs",),
}
COVERED = {"training": ("training", "forward", "inference"), "inference": ("inference",)}
# Settings that a certificate and the attempt that it covers must share.
SAME = ("framework", "precision", "mode", "layout")
# Settings that `steptime certify` needs as flags, unless they have these defaults.
COMMAND_DEFAULTS = {"framework": "", "mode": "eager", "precision": "fp32", "device": "cpu"}


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What a worker found when it compared a framework's lowering with the reference."""

    id: str
    case: Case
    fingerprint: str
    version: str  # of the framework
    device: str  # "cpu", or the GPU's name
    # Training (which includes inference), or inference alone.
    covers: str
    items: tuple[dict[str, Any], ...]
    # What fp64 proves: certificate, passed and proves; or the reason why there is none.
    semantics: dict[str, Any]
    program: str = ""  # digest of the code that was certified

    @property
    def passed(self) -> bool:
        """Nothing contradicts the network, and everything that is required is proved."""
        return not self.is_wrong and not self.unproved

    @property
    def is_wrong(self) -> bool:
        """An error lies beyond its bound, here or in fp64. Too little proof is not that."""
        return bool(self.failed) or not self.semantics.get("passed", True)

    @property
    def failed(self) -> tuple[dict[str, Any], ...]:
        return tuple(item for item in self.items if not item["passed"])

    @property
    def weak(self) -> tuple[str, ...]:
        """Names of items of which no network proves much."""
        names = dict.fromkeys(item["item"] for item in self.items if item.get("weak"))
        return tuple(name for name in names if name not in self.proves)

    @property
    def is_reduced(self) -> bool:
        """Whether training was proved on a reduced copy of the network."""
        return any(item.get("network") == "reduced" for item in self.items)

    @property
    def proves(self) -> tuple[str, ...]:
        """Names of items that pass with a bound narrow enough to mean something."""
        names = [item["item"] for item in self.items if item["passed"] and not item.get("weak")]
        return tuple(dict.fromkeys(names))

    @property
    def unproved(self) -> tuple[str, ...]:
        """Names of required items that neither this precision nor fp64 proves."""
        tested = {item["item"] for item in self.items}
        in_fp64 = set(self.semantics.get("proves", ())) - {"outputs"}
        proved = set(self.proves) | in_fp64
        required = [name for name in REQUIRED[self.covers] if name in tested]
        return tuple(name for name in required if name not in proved)

    @property
    def name(self) -> str:
        """The short id that `steptime certify` and `compare` print."""
        return self.id[-8:]

    @property
    def worst(self) -> dict[str, Any]:
        """The item nearest to its bound, or farthest beyond it.

        One that proves little counts only if there is no other."""
        telling = [item for item in self.items if not item.get("weak") or not item["passed"]]
        return max(telling or self.items, key=_share)

    def to_dict(self) -> dict[str, Any]:
        return vars(self) | {
            "case": self.case.to_dict(),
            "items": list(self.items),
            "passed": self.passed,
            "unproved": list(self.unproved),
        }


def _share(item: dict[str, Any]) -> float:
    """How much of its bound the item uses; None is stored for a value that is not finite."""
    return float("inf") if item["share"] is None else float(item["share"])


def read_certificate(attempt: Attempt) -> Certificate | None:
    """None if the attempt certified nothing."""
    findings = attempt.findings.get("certificate")
    if findings is None:
        return None
    return Certificate(
        id=attempt.id,
        case=attempt.case,
        fingerprint=attempt.network["fingerprint"],
        version=findings["version"],
        device=device_name(attempt) or attempt.case.device,
        covers=findings["covers"],
        items=tuple(findings["items"]),
        semantics=findings.get("semantics", {}),
        program=attempt.program,
    )


def read_certificates(attempts: Iterable[Attempt]) -> list[Certificate]:
    """In the order of the attempts: oldest first."""
    certificates = [read_certificate(attempt) for attempt in attempts]
    return [certificate for certificate in certificates if certificate is not None]


def device_name(attempt: Attempt) -> str | None:
    """The GPU's name, or "cpu". None if the attempt did not record which GPU it was."""
    if attempt.case.device == "cpu":
        return "cpu"
    gpus = attempt.machine.get("gpus") or []
    index = int(attempt.case.device.partition(":")[2])
    return gpus[index]["name"] if index < len(gpus) else None


def find_certificate(attempt: Attempt, certificates: Sequence[Certificate]) -> Certificate | None:
    """The newest certificate about this work, passed or not.

    Facts that the attempt has not recorded yet cannot contradict a certificate."""
    for certificate in reversed(certificates):
        if _covers(certificate, attempt):
            return certificate
    return None


def certificate_id(attempt: Attempt, certificates: Sequence[Certificate]) -> str | None:
    """The id of the certificate that proves this work correct."""
    certificate = find_certificate(attempt, certificates)
    return certificate.id if certificate and certificate.passed else None


def _covers(certificate: Certificate, attempt: Attempt) -> bool:
    case = attempt.case
    proved = certificate.case
    same_optimizer = case.phase != "training" or proved.optimizer == case.optimizer
    version = attempt.software.get(case.framework, certificate.version)
    device = device_name(attempt) or certificate.device
    return (
        certificate.fingerprint == attempt.network.get("fingerprint")
        # Of other code, or of unknown code, it says nothing.
        and certificate.program == attempt.program != ""
        and all(getattr(proved, name) == getattr(case, name) for name in SAME)
        and case.phase in COVERED[certificate.covers]
        and same_optimizer
        and certificate.version == version
        and certificate.device == device
        and (proved.device == "cpu") == (case.device == "cpu")
    )


def why_uncertified(a: Attempt, b: Attempt, certificates: Sequence[Certificate]) -> str | None:
    """Why two frameworks may not be compared; None if both are proved to compute the same."""
    frameworks = f"{a.case.framework} and {b.case.framework} are different frameworks"
    for attempt in (_provable(a), _provable(b)):
        work = _describe_work(attempt)
        certificate = find_certificate(attempt, certificates)
        if certificate is None:
            command = _certify_command(a.case, b.case)
            return f"{frameworks}, and no certificate covers {work}; `{command}` makes one"
        if not certificate.passed:
            item = certificate.worst
            failure = f"failed its certificate {certificate.name}: {item['item']}, {item['where']}"
            return f"{frameworks}, and {work} {failure}"
    return None


def _provable(attempt: Attempt) -> Attempt:
    """What a certificate can prove of it. int8 is another network: its fp32 is proved instead."""
    if attempt.case.precision != "int8":
        return attempt
    return replace(attempt, case=replace(attempt.case, precision="fp32"))


def _certify_command(*cases: Case) -> str:
    provable = [replace(case, precision=case.precision.replace("int8", "fp32")) for case in cases]
    command = f"steptime certify {cases[0].workload}"
    layouts = list(dict.fromkeys(case.layout for case in provable))
    if layouts != ["nchw"]:
        command += f" layout={','.join(layouts)}"
    for name, default in COMMAND_DEFAULTS.items():
        values = list(dict.fromkeys(getattr(case, name) for case in provable))
        if values != [default]:
            command += "".join(f" --{name} {value}" for value in values)
    return command


def certified_remark(a: Attempt, b: Attempt, certificates: Sequence[Certificate]) -> str:
    names = []
    for attempt in (_provable(a), _provable(b)):
        certificate = find_certificate(attempt, certificates)
        if certificate is not None:
            names.append(certificate.name)
    remark = f"certified: both compute the same network (certificates {' and '.join(names)})"
    quantised = [side.case.framework for side in (a, b) if side.case.precision == "int8"]
    if quantised:
        remark += (
            f" in fp32; int8 of {' and '.join(quantised)} is another network, which no certificate "
            "covers: its accuracy loss says how far it is from that framework's fp32"
        )
    return remark


def _describe_work(attempt: Attempt) -> str:
    case = attempt.case
    version = attempt.software.get(case.framework, "")
    layout = case.layout if case.layout != "nchw" else ""
    settings = " ".join(filter(None, [case.framework, version, case.mode, case.precision, layout]))
    return f"{settings} on {device_name(attempt) or case.device} for {case.phase}"
