"""How much longer a step takes after a wait, and how much of a longer step was the wait itself.

Does no I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from steptime.analysis.scaling.draws import Uncertain, draw_typical
from steptime.core.record import Attempt

FINDINGS = "pause_cost"
# A step cannot gain more than this share of a longer wait before it.
STEEPEST = 0.9


class _Section(NamedTuple):
    """From one pause to the next."""

    begin: float
    length: float
    # How much longer a step takes after the longer pause.
    cost: Uncertain


@dataclass(frozen=True)
class PauseCost:
    """How much longer a step takes after a pause, as a share of the step.

    Linear between pauses. After a wait longer than the longest pause, the cost is that of it."""

    pauses: tuple[float, ...] = (0.0,)
    longer: tuple[Uncertain, ...] = (np.zeros(1),)

    def exposed_seconds(self, wait: Uncertain, bare: Uncertain) -> Uncertain:
        """What this wait adds to a step of `bare` seconds: itself and its cost for the step."""
        exposed = wait
        for begin, length, cost in self._sections(bare):
            exposed = exposed + np.clip(wait - begin, 0, length) / length * cost
        return exposed

    def wait_seconds(self, exposed: Uncertain, bare: Uncertain) -> Uncertain:
        """The inverse of `exposed_seconds`. Values below zero are noise without a cost."""
        wait = np.minimum(exposed, 0)
        left = np.maximum(exposed, 0)
        for _, length, cost in self._sections(bare):
            spent = np.minimum(left, length + cost)
            wait = wait + spent / (length + cost) * length
            left = left - spent
        total: Uncertain = wait + left
        return total

    def _sections(self, bare: Uncertain) -> Iterator[_Section]:
        for i in range(1, len(self.pauses)):
            begin = self.pauses[i - 1]
            length = self.pauses[i] - begin
            cost = (self.longer[i] - self.longer[i - 1]) * bare
            yield _Section(begin, length, np.maximum(cost, -STEEPEST * length))


# Nothing is known of it.
NO_COST = PauseCost()


def pause_cost(attempts: Sequence[Attempt], rng: np.random.Generator) -> PauseCost:
    """A step after a pause is compared with steps without one of the same turn.

    The typical turn counts for a process."""
    recorded = [attempt.findings.get(FINDINGS) for attempt in attempts]
    findings = [finding for finding in recorded if finding]
    if not findings:
        return NO_COST
    ratios = []
    for finding in findings:
        seconds = np.asarray(finding["turns"])
        ratios.append(np.median(seconds / seconds[:, :1], axis=0))
    # The first pause is none at all: its ratio is 1.
    by_pause = np.array(ratios).T[1:]
    longer = [draw_typical(pause_ratios, rng) - 1 for pause_ratios in by_pause]
    return PauseCost(tuple(findings[0]["pauses_seconds"]), (np.zeros(1), *longer))
