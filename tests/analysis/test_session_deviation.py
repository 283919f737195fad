"""How much sessions differ: learned from history, proved by simulation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from factories import make_attempt, make_record
from steptime.analysis import intervals
from steptime.analysis.session_deviation import (
    ASSUMED,
    SessionDeviation,
    SessionPair,
    SessionValue,
    compare_sessions,
    learn_deviation,
    machine_key,
    read_history,
    session_value,
)
from steptime.core.record import Record

TRIALS = 2000
PROCESSES = 8
PROCESS_SD = 0.01


def history(values: list[float], work: str = "w", machine: str = "m") -> list[SessionValue]:
    return [SessionValue(machine, work, f"s{i}", value) for i, value in enumerate(values)]


def false_alarms(
    session_sd: float, sessions: int, reach_of: Callable[[list[SessionValue]], float]
) -> float:
    """How often two equal cases, each of its own session, seem to differ.

    `reach_of` tells from earlier sessions how far two sessions may lie apart."""
    rng = np.random.default_rng(7)
    first, second, *earlier = session_sd * rng.standard_normal((sessions + 2, TRIALS))
    noise = PROCESS_SD * rng.standard_normal((2, TRIALS, PROCESSES))
    low, centre, high = shift_intervals(first[:, None] + noise[0], second[:, None] + noise[1])
    reaches = np.array([reach_of(history([row[i] for row in earlier])) for i in range(TRIALS)])
    down = np.hypot(centre - low, reaches)
    up = np.hypot(high - centre, reaches)
    return float(np.mean((centre > down) | (-centre > up)))


def shift_intervals(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, ...]:
    """As `intervals.mann_whitney` at 5 %, for many pairs at once."""
    differences = np.sort((b[:, :, None] - a[:, None, :]).reshape(len(a), -1))
    tails = 2 * np.cumsum(intervals.mann_whitney_distribution(PROCESSES, PROCESSES))
    depth = int(np.sum(tails <= 0.05))
    return differences[:, depth - 1], np.median(differences, axis=1), differences[:, -depth]


def learned_reach(values: list[SessionValue]) -> float:
    deviation = learn_deviation(values, "m")
    return SessionPair(deviation, deviation).reach(0.05)


def old_reach(values: list[SessionValue]) -> float:
    """3 % for every machine, whatever its history."""
    return 1.96 * math.sqrt(2) * ASSUMED


@pytest.mark.parametrize("sessions", [0, 2, 7, 20])
@pytest.mark.parametrize("session_sd", [0.01, 0.03, 0.06])
def test_learn_deviation_keeps_false_alarms_rare(session_sd: float, sessions: int) -> None:
    assert false_alarms(session_sd, sessions, learned_reach) <= 0.05


def test_learn_deviation_beats_a_fixed_deviation() -> None:
    """Negative control: the fixed 3 % of before alarms for a third of equal sessions."""
    assert false_alarms(0.06, 7, old_reach) > 0.25


def test_learn_deviation_narrows_for_a_quiet_machine() -> None:
    quiet = learn_deviation(history([0.002 * (-1) ** i for i in range(20)]), "m")
    assert quiet.value < 0.011 and quiet.reach(0.05) < SessionDeviation().reach(0.05) / 5


def test_learn_deviation_takes_a_noisy_history_as_it_is() -> None:
    noisy = learn_deviation(history([0.06, -0.06, 0.06, -0.06]), "m")
    assert noisy.value == pytest.approx(0.06 * math.sqrt(4 / 3))
    assert str(noisy) == "6.9 % (learned from 4 sessions)"


@pytest.mark.parametrize("values", [[], [0.1]])
def test_learn_deviation_assumes_three_percent_without_repetition(values: list[float]) -> None:
    deviation = learn_deviation(history(values), "m")
    assert (deviation.value, deviation.sessions) == (0.03, 0)
    assert "3 % (assumed" in str(deviation)


def test_learn_deviation_ignores_other_machines_and_the_compared_sessions() -> None:
    values = [*history([0.5, -0.5], machine="other"), *history([0.5, -0.5, 0.0])]
    assert learn_deviation(values, "m", without=("s0", "s1")).sessions == 0


def test_learn_deviation_ignores_that_cases_differ() -> None:
    values = [*history([0.0, 0.001]), *history([5.0, 5.001], work="v")]
    assert learn_deviation(values, "m").value < ASSUMED


def test_learn_deviation_counts_cases_of_one_session_once() -> None:
    single = learn_deviation(history([0.06, -0.06, 0.06, -0.06]), "m")
    cases = [value for work in "abcde" for value in history([0.06, -0.06, 0.06, -0.06], work)]
    assert learn_deviation(cases, "m") == single


def test_learn_deviation_clips_a_disturbed_session() -> None:
    values = [0.001 * (-1) ** i for i in range(20)]
    disturbed = learn_deviation(history([*values, 3.0]), "m")
    assert disturbed.value < 0.06


def test_learn_deviation_keeps_sessions_that_are_often_slow() -> None:
    """A machine that is twice as slow in every third session is not quiet."""
    values = [math.log(2) if i % 3 == 0 else 0.001 * i for i in range(12)]
    assert learn_deviation(history(values), "m").value > 0.3


def test_session_value_is_the_typical_time() -> None:
    value = session_value(make_record(1))
    assert value is not None and math.exp(value.log_seconds) == pytest.approx(1e-3, rel=0.02)


@pytest.mark.parametrize("changes", [{"pair": "p"}, {"processes": 2}, {"compilations": 2}], ids=str)
def test_session_value_skips_what_says_nothing_about_sessions(changes: dict[str, Any]) -> None:
    assert session_value(make_record(1, **changes)) is None


def test_session_value_tells_software_apart() -> None:
    first, second = (session_value(make_record(1, software={"torch": v})) for v in ("1", "2"))
    assert first is not None and second is not None and first.work != second.work


def test_read_history_reads_the_asked_machines_only() -> None:
    records = [make_record(i, machine={"host": host, "health": {}}) for i, host in enumerate("ab")]
    machine = machine_key(records[0].attempts)
    assert [value.machine for value in read_history(records, {machine})] == [machine]


def started(minutes: list[int], **changes: Any) -> Record:
    attempts = []
    for number, minute in enumerate(minutes):
        start = f"2026-01-01T00:{minute:02}:00+00:00"
        attempts.append(make_attempt([10**6] * 40, process=number, started=start, **changes))
    return Record(attempts=tuple(attempts))


def test_compare_sessions_widens_nothing_within_one_session() -> None:
    pair = compare_sessions(started([0, 3, 4, 7]), started([1, 2, 5, 6], mode="compiled"), ())
    assert pair == SessionPair() and pair.reach(0.05) == 0


@pytest.mark.parametrize(
    "other",
    [
        started([10, 11, 12, 13]),
        started([1, 2, 5, 6], session="another"),
        started([1, 2, 5, 6], machine={"host": "another"}),
    ],
    ids=["later", "session", "machine"],
)
def test_compare_sessions_widens_what_was_not_interleaved(other: Record) -> None:
    assert compare_sessions(started([0, 3, 4, 7]), other, ()).a == SessionDeviation()


def test_compare_sessions_learns_each_machine_by_itself() -> None:
    a = started([0], session="a", machine={"host": "calm"})
    b = started([0], session="b", machine={"host": "wild"})
    machine = machine_key(b.attempts)
    values = [replace_machine(value, machine) for value in history([0.1, -0.1, 0.1])]
    pair = compare_sessions(a, b, values)
    assert pair.a is not None and pair.b is not None
    assert (pair.a.sessions, pair.b.sessions) == (0, 3)
    assert str(pair).startswith("A 3 % (assumed") and "B 14 % (learned from 3" in str(pair)


def replace_machine(value: SessionValue, machine: str) -> SessionValue:
    return value._replace(machine=machine)
