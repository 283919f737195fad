"""How much longer a step takes behind a wait, and what of a longer step was the wait itself. Does no I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from steptime.analysis.scaling.draws import Uncertain, measured
from steptime.core.record import Attempt

STEEPEST = 0.9  # of a longer wait: more than that a step behind it cannot gain


@dataclass(frozen=True)
class Waiting:
    """Shares of a step, behind pauses from 0 upwards. In between they are in proportion; behind a longer wait than the
    longest pause it is as behind that one."""

    pauses: tuple[float, ...] = (0.0,)
    longer: tuple[Uncertain, ...] = (np.zeros(1),)

    def exposed(self, wait: Uncertain, bare: Uncertain) -> Uncertain:
        """What a step of `bare` seconds takes longer because of this wait: the wait, and what it costs the step."""
        found = wait
        for begin, length, cost in self._parts(bare):
            found = found + np.clip(wait - begin, 0, length) / length * cost
        return found

    def wait(self, exposed: Uncertain, bare: Uncertain) -> Uncertain:
        """The reverse. Below zero, which is noise, there is no wait that could cost anything."""
        found, left = np.minimum(exposed, 0), np.maximum(exposed, 0)
        for _, length, cost in self._parts(bare):
            part = np.minimum(left, length + cost)
            found, left = found + part / (length + cost) * length, left - part
        total: Uncertain = found + left
        return total

    def _parts(self, bare: Uncertain) -> Iterator[tuple[float, float, Uncertain]]:
        """From one pause to the next: where it begins, how long it is, and what it costs more."""
        for place in range(1, len(self.pauses)):
            begin, end = self.pauses[place - 1 : place + 1]
            cost = (self.longer[place] - self.longer[place - 1]) * bare
            yield begin, end - begin, np.maximum(cost, -STEEPEST * (end - begin))


FREE = Waiting()
"""Nothing is known of it."""


def waiting(attempts: Sequence[Attempt], rng: np.random.Generator) -> Waiting:
    """A step behind a pause is compared with steps without one of the same turn, and a process has the typical turn."""
    told = [attempt.findings["waiting"] for attempt in attempts if attempt.findings.get("waiting")]
    if not told:
        return FREE
    turns = [np.asarray(one["turns"]) for one in told]
    ratios = np.array([np.median(seconds / seconds[:, :1], axis=0) for seconds in turns])
    longer = [measured(of_a_pause, rng) - 1 for of_a_pause in ratios.T[1:]]
    return Waiting(tuple(told[0]["pauses_seconds"]), (np.zeros(1), *longer))
