from __future__ import annotations

from typing import Any

from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.core.measurement import Measurement
from steptime.core.protocol import preset
from steptime.core.record import Attempt, Failure, Record

SHAPE: dict[str, Any] = {
    "stamps": (0, 5),
    "device_ns": None,
    "blocks": (),
    "clock": {},
    "starts": {},
}
MEASUREMENT = Measurement(group=1, cut=0, steady=True, **SHAPE)


def attempt(process: int, accuracy: dict[str, Any] | None, **outcome: Any) -> Attempt:
    words: dict[str, Any] = {name: {} for name in ("machine", "software", "network", "environment")}
    identity = {"id": str(process), "session": "s", "plan": "p", "started": "", "process": process}
    findings = {} if accuracy is None else {"accuracy": accuracy}
    case = Case(workload="lenet5", precision="bf16")
    return Attempt(
        case=case, protocol=preset("quick"), findings=findings, **words, **identity, **outcome
    )


def test_the_first_process_that_measured_tells_the_price() -> None:
    lost = attempt(0, {"samples": 1}, failure=Failure(cause=Cause.CRASHED, reason="gone"))
    record = Record(attempts=(lost, attempt(1, {"samples": 2}, measurement=MEASUREMENT)))
    assert record.accuracy == {"samples": 2} and not record.accuracy_differs


def test_processes_that_disagree_are_noticed() -> None:
    record = Record(
        attempts=tuple(attempt(n, {"samples": n}, measurement=MEASUREMENT) for n in (1, 2))
    )
    assert record.accuracy == {"samples": 1} and record.accuracy_differs


def test_full_precision_has_no_price() -> None:
    assert Record(attempts=(attempt(0, None, measurement=MEASUREMENT),)).accuracy is None
