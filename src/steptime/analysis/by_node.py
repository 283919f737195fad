"""Two levels of one setting, paired within node: a slow node is not mistaken for a slow tier.

Reads no store."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.special import stdtr

from steptime.analysis import intervals
from steptime.analysis.compare import (
    ALPHA,
    INCONCLUSIVE,
    LIKELY,
    Verdict,
    make_verdict,
    outcome_of,
)
from steptime.analysis.intervals import Interval
from steptime.analysis.quantiles import Numbers

# Two nodes say nothing about how much nodes differ.
LEAST_NODES = 3
# From this number of nodes on, signed ranks reach 5 %.
RANKED_NODES = 6
Key = tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One process, or one run of another tool."""

    node: str
    # A campaign or a day: the speed of a node changes between them.
    occasion: str
    # The configuration, without the setting that is compared.
    what: Key
    seconds: float

    @property
    def block(self) -> Key:
        """Readings of one block differ in nothing but the setting that is compared."""
        return (self.node, self.occasion, self.what)


@dataclass(frozen=True, kw_only=True)
class ByNode:
    # B's time over A's, with nodes as the units.
    paired: Verdict
    # The same from all readings, as if there were no nodes.
    naive: Verdict
    # B's time over A's on each node that has both sides.
    nodes: dict[str, float]
    # Occasions and configurations with both sides on one node.
    pairs: int
    # Readings without a partner on their node: not in the paired ratio.
    unpaired: int
    # Slowest node's time over the fastest's; None: no two did the same work.
    spread: float | None
    remarks: tuple[str, ...] = ()

    @property
    def agree(self) -> bool:
        return self.paired.outcome.removeprefix(LIKELY) == self.naive.outcome

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"agree": self.agree}


def by_node(a: Sequence[Reading], b: Sequence[Reading], same_within: float) -> ByNode:
    """Nodes are the units: a node that ran more often does not count more."""
    first = _mean_logs(a, lambda reading: reading.block)
    second = _mean_logs(b, lambda reading: reading.block)
    blocks = {key: second[key] - first[key] for key in first if key in second}
    by_name: dict[str, list[float]] = {}
    for (node, *_), log_ratio in blocks.items():
        by_name.setdefault(node, []).append(log_ratio)
    nodes = {node: float(np.mean(logs)) for node, logs in by_name.items()}
    unpaired = sum(reading.block not in blocks for reading in (*a, *b))
    return ByNode(
        paired=_paired_verdict(np.array(list(nodes.values())), same_within),
        naive=_naive_verdict(a, b, same_within),
        nodes={node: math.exp(nodes[node]) for node in sorted(nodes)},
        pairs=len(blocks),
        unpaired=unpaired,
        spread=_node_spread((*a, *b)),
        remarks=_remarks(len(nodes)),
    )


def _paired_verdict(logs: Numbers, same_within: float) -> Verdict:
    if len(logs) < LEAST_NODES:
        centre = float(np.mean(logs)) if len(logs) else math.nan
        return Verdict(INCONCLUSIVE, math.exp(centre))
    if len(logs) >= RANKED_NODES:
        p = intervals.signed_rank_p(logs)
        return _verdict(intervals.signed_rank(logs, ALPHA), p, same_within)
    error = float(np.std(logs, ddof=1)) / len(logs) ** 0.5
    size = abs(float(np.mean(logs))) / error if error else math.inf
    p = 2 * float(stdtr(len(logs) - 1, -size))
    verdict = _verdict(intervals.student(logs, ALPHA), p, same_within)
    if verdict.outcome == INCONCLUSIVE:
        return verdict
    return replace(verdict, outcome=f"{LIKELY}{verdict.outcome}")


def _naive_verdict(a: Sequence[Reading], b: Sequence[Reading], same_within: float) -> Verdict:
    """Relative to each configuration's middle. Configurations of one side only do not count."""
    first = _mean_logs(a, lambda reading: reading.what)
    second = _mean_logs(b, lambda reading: reading.what)
    middles = {key: (first[key] + second[key]) / 2 for key in first if key in second}
    if not middles:
        return Verdict(INCONCLUSIVE, math.nan)
    a_logs = _centred_logs(a, middles)
    b_logs = _centred_logs(b, middles)
    interval = intervals.mann_whitney(a_logs, b_logs, ALPHA)
    if interval is None:
        ratio = math.exp(intervals.shift(a_logs, b_logs))
        return Verdict(INCONCLUSIVE, ratio)
    return _verdict(interval, None, same_within)


def _centred_logs(side: Iterable[Reading], middles: dict[Key, float]) -> Numbers:
    logs = []
    for reading in side:
        if reading.what in middles:
            logs.append(math.log(reading.seconds) - middles[reading.what])
    return np.array(logs)


def _verdict(interval: Interval | None, p: float | None, same_within: float) -> Verdict:
    # Callers make sure that there are enough values for an interval.
    assert interval is not None
    outcome = outcome_of(interval, same_within)
    return make_verdict(outcome, interval, p, alpha=ALPHA, level=1 - ALPHA)


def _node_spread(readings: Iterable[Reading]) -> float | None:
    """Of nodes that ran the same configuration."""
    levels: dict[Key, list[float]] = {}
    means = _mean_logs(readings, lambda reading: (reading.node, reading.what))
    for (_, what), log_seconds in means.items():
        levels.setdefault(what, []).append(log_seconds)
    spreads = [max(logs) - min(logs) for logs in levels.values() if len(logs) > 1]
    return math.exp(max(spreads)) if spreads else None


def _mean_logs(side: Iterable[Reading], key: Callable[[Reading], Key]) -> dict[Key, float]:
    groups: dict[Key, list[float]] = {}
    for reading in side:
        groups.setdefault(key(reading), []).append(math.log(reading.seconds))
    return {group: float(np.mean(logs)) for group, logs in groups.items()}


def _remarks(nodes: int) -> tuple[str, ...]:
    if nodes < LEAST_NODES:
        return (f"nodes with both sides: {nodes}; a comparison needs at least {LEAST_NODES}",)
    if nodes < RANKED_NODES:
        return (f"only {nodes} nodes: the interval assumes normally distributed differences",)
    return ()
