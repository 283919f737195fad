"""What was found inside a step, as people read it, and which run it belongs to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from factories import make_attempt
from steptime.analysis.step_profile import TASK, newest_profile, read_profile
from steptime.core.record import Attempt

FOUND: dict[str, Any] = {
    "phases": {
        "seconds": {"optimizer": 0.001, "forward": 0.003, "backward": 0.006},
        "plain_seconds": 0.005,
        "perturbation": 0.03, "how": "stamps",
    },
    "operators": {
        "classes": {"convolution": 0.62, "pooling": 0.14, "framework overhead": 0.14, "other": 0.1},
        "operators": [{"name": "conv", "class": "convolution", "calls": 3, "share": 0.62}],
        "plain_seconds": 0.005, "perturbation": 0.11, "steps": 10,
        "trace": {"sha256": "ab" * 32, "bytes": 10, "events": 4},
    },
    "memory": {
        "held_bytes": {"weights": 1 << 20, "activations": 3 << 20}, "note": "",
        "process_peak_bytes": 1 << 30,
    },
    "absent": {},
    "least_bytes": 1000,
}  # fmt: skip
Make = Callable[..., Attempt]


@pytest.fixture
def look() -> Make:
    def make(found: Any = FOUND, **changes: Any) -> Attempt:
        made = make_attempt([1] * 40, blocks=1, **changes)
        machine = {**made.machine, "fingerprint": "abc"}
        return replace(made, task=TASK, measurement=None, findings={TASK: found}, machine=machine)

    return make


def test_profile_sentence_names_the_largest_shares(look: Make) -> None:
    found = read_profile(look())
    assert found is not None and found.sentence == (
        "62 % of a step is convolution, 14 % pooling; 14 % is spent between operators; "
        "the backward pass takes 60 %; "
        "at most 4 MiB are held, 75 % of it activations."
    )


def test_profile_times_are_shares_of_a_plain_step(look: Make) -> None:
    found = read_profile(look())
    assert found is not None
    assert [(part.name, part.amount) for part in found.phases] == [
        ("forward", pytest.approx(0.0015)), ("backward", pytest.approx(0.003)),
        ("optimizer", pytest.approx(0.0005)),
    ]  # fmt: skip
    assert found.operators[0]["seconds"] == pytest.approx(0.0031)
    assert [part.name for part in found.memory] == ["activations", "weights"]


def test_profile_remarks_report_perturbation(look: Make) -> None:
    found = read_profile(look())
    assert found is not None and found.remarks == [
        "Marking the phases changed the step by +3.0 %: only the shares are meaningful.",
        "Tracing the operators changed the step by +11.0 %.",
        "10 % of the time is in operators of no known class.",
    ]


def test_newest_profile_matches_configuration_and_machine(look: Make) -> None:
    run = replace(look(), task="measure")
    older, newer = look(), look(trial=0, started="2026-02-01T00:00:00+00:00")
    others = [
        look(batch_size=7),
        replace(look(), machine={"fingerprint": "other"}),
        look(framework="jax"),
    ]
    found = newest_profile(run, [older, newer, *others])
    assert found is not None and found.attempt is newer
    assert newest_profile(run, others) is None


@pytest.mark.parametrize(
    "nonsense",
    [
        None,
        [],
        {"operators": {"classes": {"a": "b"}}},
        {"phases": {"seconds": 3}},
        {"memory": {"held_bytes": {"a": "b"}}},
    ],
)
def test_read_profile_is_none_for_damaged_findings(look: Make, nonsense: Any) -> None:
    assert read_profile(look(nonsense)) is None


def test_profile_sentence_is_empty_for_an_empty_profile(look: Make) -> None:
    found = read_profile(look({"absent": {"operators": "It does not tell."}}))
    assert (
        found is not None
        and found.sentence == ""
        and found.remarks == []
        and found.step_seconds is None
    )
