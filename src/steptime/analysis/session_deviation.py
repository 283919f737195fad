"""How much a machine differs from session to session, learned from its own stored results."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from steptime.analysis import intervals
from steptime.analysis.flags import invalid_flags
from steptime.analysis.quantiles import Numbers
from steptime.analysis.stopping import counted_processes
from steptime.core.format import percent
from steptime.core.record import Attempt, Record

# Assumed if a machine has no history.
ASSUMED = 0.03
# The assumption counts as much as this many degrees of freedom, so it has a wide quantile.
ASSUMED_FREEDOM = 2.0
# Of a session: with fewer, its value shows its processes rather than the session.
LEAST_PROCESSES = 3
# Rare disturbed sessions, farther away than so many deviations, count as if they were that far. The
# deviation is that of the nearest nine in ten: what happens more often is no rare disturbance.
CLIP = 6.0
NEAREST = 0.9
NORMAL_90 = 1.645


class SessionValue(NamedTuple):
    """What one session says about one case."""

    # Equal for the same machine and kind of device.
    machine: str
    # Equal for the same case, network and software.
    work: str
    session: str
    log_seconds: float


@dataclass(frozen=True)
class SessionDeviation:
    # Standard deviation of the logarithm of a case's typical time, over sessions.
    value: float = ASSUMED
    # From how many sessions it was learned. 0: it is assumed.
    sessions: int = 0
    freedom: float = ASSUMED_FREEDOM

    def reach(self, alpha: float) -> float:
        """So far to either side may a session lie, except with probability alpha."""
        return self.value * float(stdtrit(self.freedom, 1 - alpha / 2))

    def __str__(self) -> str:
        if not self.sessions:
            return f"{percent(self.value)} (assumed: too few earlier sessions on this machine)"
        return f"{percent(self.value)} (learned from {self.sessions} sessions)"


@dataclass(frozen=True)
class SessionPair:
    """The deviations of the sessions of A and B. None: both ran in one session."""

    a: SessionDeviation | None = None
    b: SessionDeviation | None = None

    def reach(self, alpha: float) -> float:
        """Independent errors add in squares."""
        return math.hypot(*(side.reach(alpha) for side in (self.a, self.b) if side is not None))

    def __str__(self) -> str:
        if self.a == self.b:
            return "" if self.a is None else str(self.a)
        return f"A {self.a}, B {self.b}"


def machine_key(attempts: Iterable[Attempt]) -> str:
    """The machine, or all machines on which the processes of a case ran."""
    texts = set()
    for attempt in attempts:
        facts = [attempt.machine.get(name) for name in ("fingerprint", "host")]
        device = attempt.case.device.partition(":")[0]
        texts.add(" ".join(str(fact or "") for fact in [*facts, device]).strip())
    return " + ".join(sorted(texts))


def session_value(record: Record) -> SessionValue | None:
    """None if the record says nothing about sessions: too few processes, or an invalid result.

    Workers of a comparison take turns, which other sessions do not, so they do not count."""
    measured = measured_attempts(record)
    if not measured or any(attempt.pair for attempt in measured):
        return None
    counted = counted_processes(record.attempts)
    if len(counted) < LEAST_PROCESSES or invalid_flags(counted):
        return None
    value = intervals.typical(np.log([process.typical for process in counted]))
    return SessionValue(machine_key(measured), _work_key(measured), record.session, value)


def measured_attempts(record: Record) -> list[Attempt]:
    return [attempt for attempt in record.attempts if attempt.measurement is not None]


def process_logs(record: Record) -> Numbers:
    """Logarithm of each counted process's typical time, in the order in which they ran."""
    return np.log([process.typical for process in counted_processes(record.attempts)])


def _work_key(attempts: Sequence[Attempt]) -> str:
    facts = [_work_facts(attempt) for attempt in attempts]
    texts = sorted({json.dumps(fact, sort_keys=True) for fact in facts})
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def _work_facts(attempt: Attempt) -> list[Any]:
    system = [attempt.machine.get(name) for name in ("kernel", "os", "libc")]
    network = attempt.network.get("fingerprint")
    return [attempt.case.key, network, attempt.software, *system]


def read_history(records: Iterable[Record], machines: Collection[str]) -> list[SessionValue]:
    """What these machines' sessions say. Records of other machines are not even sorted."""
    history = []
    for record in records:
        if machine_key(measured_attempts(record)) in machines:
            value = session_value(record)
            if value is not None:
                history.append(value)
    return history


def learn_deviation(
    history: Iterable[SessionValue], machine: str, without: Collection[str] = ()
) -> SessionDeviation:
    """From cases that this machine measured in several sessions, pooled over the cases.

    `without`: the sessions that are compared, which must not be their own yardstick. A value
    below the assumed one is shrunk towards it; a value above it is taken as it is."""
    groups: dict[str, dict[str, float]] = {}
    for value in history:
        if value.machine == machine and value.session not in without:
            groups.setdefault(value.work, {})[value.session] = value.log_seconds
    repeated = [sessions for sessions in groups.values() if len(sessions) > 1]
    if not repeated:
        return SessionDeviation()
    variance = _pooled_variance(repeated)
    sessions = {name for group in repeated for name in group}
    # Cases of one session share its deviation: they are not independent of each other.
    count = sum(map(len, repeated))
    freedom = (count - len(repeated)) * len(sessions) / count
    shrunk = ASSUMED_FREEDOM * ASSUMED**2 + freedom * variance
    shrunk /= ASSUMED_FREEDOM + freedom
    deviation = math.sqrt(max(shrunk, variance))
    return SessionDeviation(deviation, len(sessions), max(freedom, ASSUMED_FREEDOM))


def compare_sessions(a: Record, b: Record, history: Sequence[SessionValue]) -> SessionPair:
    """How far the sessions of two records may differ without any other reason."""
    if _are_interleaved(a, b):
        return SessionPair()
    compared = (a.session, b.session)
    deviations = []
    for record in (a, b):
        machine = machine_key(measured_attempts(record))
        deviations.append(learn_deviation(history, machine, without=compared))
    return SessionPair(*deviations)


def _are_interleaved(a: Record, b: Record) -> bool:
    """Whether one session ran both on one machine in random order.

    A session that was continued later, or a case with many more processes, is not enough: the
    middle of each side must lie within the other."""
    first = measured_attempts(a)
    second = measured_attempts(b)
    if a.session != b.session or machine_key(first) != machine_key(second):
        return False
    a_starts = sorted(attempt.started for attempt in first)
    b_starts = sorted(attempt.started for attempt in second)
    a_middle = a_starts[len(a_starts) // 2]
    b_middle = b_starts[len(b_starts) // 2]
    return a_starts[0] < b_middle < a_starts[-1] and b_starts[0] < a_middle < b_starts[-1]


def _pooled_variance(groups: Sequence[dict[str, float]]) -> float:
    """Of deviations from each group's median, of which rare extremes are clipped."""
    residuals = []
    for group in groups:
        values = np.array(list(group.values()))
        count = len(values)
        residuals.append((values - np.median(values)) * math.sqrt(count / (count - 1)))
    pooled = np.concatenate(residuals)
    spread = float(np.quantile(np.abs(pooled), NEAREST)) / NORMAL_90
    limit = CLIP * max(spread, ASSUMED)
    return float(np.mean(np.clip(pooled, -limit, limit) ** 2))
