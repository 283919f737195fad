"""Two levels of one setting, paired within node: a slow node is then not mistaken for a slow tier. Reads no store."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.special import stdtr

from steptime.analysis import intervals
from steptime.analysis.compare import Verdict, word_of
from steptime.analysis.intervals import Interval
from steptime.analysis.quantiles import Numbers

ALPHA = 0.05
LEAST_NODES = 3  # two say nothing about how much nodes differ
RANKED_NODES = 6  # from here on signed ranks reach 5 %
LIKELY = "likely "


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One process, or one run of another tool."""

    node: str
    occasion: str  # a campaign, or a day: a node is not equally fast on all of them
    what: tuple[Any, ...]  # the configuration, but for what is compared
    seconds: float


@dataclass(frozen=True, kw_only=True)
class ByNode:
    paired: Verdict  # B's time over A's, nodes being the units
    naive: Verdict  # the same from all readings, as if there were no nodes
    nodes: dict[str, float]  # of each that has both sides: B's time over A's there
    pairs: int  # occasions and configurations with both sides on one node
    alone: int  # readings without a partner on their node: no part of the paired ratio
    spread: (
        float | None
    )  # the slowest node's time over the fastest's; None: no two did the same work
    remarks: tuple[str, ...] = ()

    @property
    def agree(self) -> bool:
        return self.paired.word.removeprefix(LIKELY) == self.naive.word

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "agree": self.agree}


def by_node(a: Sequence[Reading], b: Sequence[Reading], same_within: float) -> ByNode:
    """Nodes are the units: what is true of most of them, not of the one that ran most often."""
    first, second = (
        _means(side, lambda one: (one.node, one.occasion, one.what)) for side in (a, b)
    )
    blocks = {key: second[key] - first[key] for key in first if key in second}
    nodes = {
        node: float(np.mean([log for key, log in blocks.items() if key[0] == node]))
        for node, *_ in blocks
    }
    partners = sum((one.node, one.occasion, one.what) in blocks for one in (*a, *b))
    return ByNode(
        paired=_paired(np.array(list(nodes.values())), same_within),
        naive=_naive(a, b, same_within),
        nodes={node: math.exp(nodes[node]) for node in sorted(nodes)},
        pairs=len(blocks),
        alone=len(a) + len(b) - partners,
        spread=_spread(a, b),
        remarks=_remarks(len(nodes)),
    )


def _paired(logs: Numbers, same_within: float) -> Verdict:
    if len(logs) < LEAST_NODES:
        centre = float(np.mean(logs)) if len(logs) else math.nan
        return Verdict("inconclusive", math.exp(centre), None, None, None)
    if len(logs) >= RANKED_NODES:
        return _verdict(
            intervals.signed_rank(logs, ALPHA), intervals.signed_rank_p(logs), same_within
        )
    error = float(np.std(logs, ddof=1)) / len(logs) ** 0.5
    size = abs(float(np.mean(logs))) / error if error else math.inf
    found = _verdict(
        intervals.student(logs, ALPHA), 2 * float(stdtr(len(logs) - 1, -size)), same_within
    )
    return found if found.word == "inconclusive" else replace(found, word=f"{LIKELY}{found.word}")


def _naive(a: Sequence[Reading], b: Sequence[Reading], same_within: float) -> Verdict:
    """Each configuration's middle is taken out; those of one side only say nothing."""
    first, second = (_means(side, lambda one: (one.what,)) for side in (a, b))
    middles = {key: (first[key] + second[key]) / 2 for key in first if key in second}
    one, other = (
        np.array([math.log(it.seconds) - middles[it.what,] for it in side if (it.what,) in middles])
        for side in (a, b)
    )
    if not middles:
        return Verdict("inconclusive", math.nan, None, None, None)
    interval = intervals.mann_whitney(one, other, ALPHA)
    if interval is None:
        return Verdict("inconclusive", math.exp(intervals.shift(one, other)), None, None, None)
    return _verdict(interval, None, same_within)


def _verdict(interval: Interval | None, p: float | None, same_within: float) -> Verdict:
    assert interval is not None  # enough values were asked for
    centre, low, high = (math.exp(end) for end in (interval.centre, interval.low, interval.high))
    return Verdict(word_of(interval, same_within), centre, low, high, p)


def _spread(a: Sequence[Reading], b: Sequence[Reading]) -> float | None:
    """Of nodes that ran the same configuration."""
    found: dict[tuple[Any, ...], list[float]] = {}
    for (_, what), level in _means((*a, *b), lambda one: (one.node, one.what)).items():
        found.setdefault(what, []).append(level)
    widest = max((max(own) - min(own) for own in found.values() if len(own) > 1), default=None)
    return None if widest is None else math.exp(widest)


def _means(
    side: Iterable[Reading], key: Callable[[Reading], tuple[Any, ...]]
) -> dict[tuple[Any, ...], float]:
    groups: dict[tuple[Any, ...], list[float]] = {}
    for one in side:
        groups.setdefault(key(one), []).append(math.log(one.seconds))
    return {group: float(np.mean(logs)) for group, logs in groups.items()}


def _remarks(nodes: int) -> tuple[str, ...]:
    if nodes < LEAST_NODES:
        return (
            f"nodes with both sides: {nodes}, and {LEAST_NODES} are the least that can tell how much nodes differ",
        )
    if nodes < RANKED_NODES:
        return (
            f"only {nodes} nodes: the interval takes their differences to follow a normal law (Student)",
        )
    return ()
