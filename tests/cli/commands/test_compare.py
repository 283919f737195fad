"""`steptime compare` as a user meets it: verdicts, inheritance of settings, refusals."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

import pytest

Command = Callable[..., "subprocess.CompletedProcess[str]"]
pytestmark = [pytest.mark.live, pytest.mark.usefixtures("misbehaving")]
CALM = "workload=mnist-mlp,framework=calm"


def test_a_live_comparison_says_the_verdict_first_and_what_differs(
    steptime: Command, short_words: str
) -> None:
    done = steptime("compare", f"{CALM},{short_words}", "seed=1")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Inconclusive: ×") and ", 1 pair." in done.stdout
    assert "differs  seed 0 → 1\n" in done.stdout


def test_b_has_the_settings_of_a_that_it_does_not_name(steptime: Command, short_words: str) -> None:
    found = json.loads(
        steptime("compare", f"{CALM},batch_size=7,{short_words}", "seed=1", "--json").stdout
    )
    assert found["b"]["case"] == {**found["a"]["case"], "seed": 1}
    assert found["differs"] == {"seed": [0, 1]} and found["units"] == 1


def test_different_work_is_refused_with_its_reasons(steptime: Command) -> None:
    done = steptime("compare", CALM, "batch_size=64")
    assert done.returncode == 5
    assert "Refused" in done.stdout and "batch_size differs: 32 and 64" in done.stdout
    reasons = json.loads(steptime("compare", CALM, "batch_size=64", "--json").stdout)
    assert reasons == {"verdict": None, "refused": ["batch_size differs: 32 and 64"]}


def test_despite_a_reason_it_is_compared_and_noted(steptime: Command, short_words: str) -> None:
    done = steptime("compare", f"{CALM},{short_words}", "batch_size=64", "--force", "curious")
    assert done.returncode == 0 and "note: force (curious): batch_size differs" in done.stdout


def test_stored_results_are_compared_by_id_and_stay_weak(
    steptime: Command, short_flags: list[str]
) -> None:
    run = [
        "run",
        "--workload",
        "mnist-mlp",
        "--set",
        "framework=calm",
        *short_flags,
        "--json",
        "--again",
    ]
    ids = [json.loads(steptime(*run).stdout)["records"][0]["attempts"][0] for _ in range(2)]
    done = steptime("compare", ids[0][-8:], ids[1])
    assert done.returncode == 0 and "2 processes each" in done.stdout
    assert "measured at different times" in done.stdout
    assert (
        "note: too few processes to decide anything" in done.stdout
        and "--preset standard" in done.stdout
    )


def test_two_sessions_are_compared_case_by_case(steptime: Command, short_flags: list[str]) -> None:
    run = [
        "run",
        "--workload",
        "mnist-mlp",
        "--set",
        "framework=calm",
        "--batch-size",
        "1,8",
        *short_flags,
        "--json",
    ]
    first, second = (
        json.loads(steptime(*run, *more).stdout)["session"] for more in ([], ["--set", "seed=1"])
    )
    done = steptime("compare", first, second[-8:])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("B over A, 2 cases: ×") and "0 → 1" in done.stdout
    assert "note: 2 of 2 cases: too few processes to decide anything" in done.stdout
    found = json.loads(steptime("compare", first, second, "--json").stdout)
    assert [row["a"]["case"]["batch_size"] for row in found["rows"]] == [1, 8]
    assert found["geometric_mean"]["ratio"] > 0 and found["without_partner"] == 0


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (CALM, "0198", "not one of each"),
        ("nothing", "else", "Nothing in results has an id that begins or ends with 'nothing'."),
        (CALM, "bach_size=3", "No setting 'bach_size'. Did you mean 'batch_size'?"),
    ],
)
def test_a_mistake_is_a_sentence(a: str, b: str, message: str, steptime: Command) -> None:
    done = steptime("compare", a, b)
    assert done.returncode == 1 and message in done.stderr
