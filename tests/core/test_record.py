from __future__ import annotations

from typing import Any

from factories import make_attempt, make_failed_attempt
from steptime.core.cause import Cause
from steptime.core.record import Attempt, Record


def make_measured(accuracy: dict[str, Any] | None) -> Attempt:
    findings = {} if accuracy is None else {"accuracy": accuracy}
    return make_attempt([5] * 40, precision="bf16", findings=findings)


def test_record_accuracy_is_that_of_the_first_measured_process() -> None:
    failed = make_failed_attempt(Cause.CRASHED, findings={"accuracy": {"samples": 1}})
    record = Record(attempts=(failed, make_measured({"samples": 2})))
    assert record.accuracy == {"samples": 2}
    assert not record.accuracy_differs


def test_record_accuracy_differs_if_processes_disagree() -> None:
    record = Record(attempts=(make_measured({"samples": 1}), make_measured({"samples": 2})))
    assert record.accuracy == {"samples": 1}
    assert record.accuracy_differs


def test_record_accuracy_is_none_for_full_precision() -> None:
    assert Record(attempts=(make_measured(None),)).accuracy is None
