"""Slow nodes in simulated clusters: who pairs by node is not fooled, who ignores them is."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from steptime.analysis.by_node import ByNode, Reading, by_node

SEEDS = range(200)
SLOW = 2.5  # times the others
Sides = tuple[list[Reading], list[Reading]]


def cluster(seed: int, *, effect: float = 1.0, nodes: int = 8, noise: float = 0.01) -> Sides:
    """A slow node has most of the runs of B: Slurm hands out nodes as they become free."""
    rng = np.random.default_rng(seed)
    levels = np.exp(0.1 * rng.standard_normal(nodes)) * np.where(np.arange(nodes) == 0, SLOW, 1.0)
    sides: Sides = ([], [])
    for node, level in enumerate(levels):
        for side, factor in enumerate((1.0, effect)):
            for _ in range(12 if side and not node else 1 + int(rng.integers(2))):
                seconds = float(level * factor * np.exp(noise * rng.standard_normal()))
                sides[side].append(Reading(node=f"n{node}", occasion="", what=(), seconds=seconds))
    return sides


def words(effect: float, **changes: float) -> tuple[Counter[str], Counter[str]]:
    sides = [cluster(seed, effect=effect, **changes) for seed in SEEDS]  # type: ignore[arg-type]
    found = [by_node(a, b, 0.02) for a, b in sides]
    return Counter(one.paired.outcome for one in found), Counter(one.naive.outcome for one in found)


def test_by_node_does_not_mistake_a_slow_node_for_a_slow_tier() -> None:
    paired, naive = words(1.0)
    assert paired["slower"] + paired["faster"] <= 0.08 * len(SEEDS)
    assert naive["slower"] >= 0.4 * len(SEEDS)


def test_by_node_finds_a_slow_tier() -> None:
    assert words(1.1)[0]["slower"] == len(SEEDS)


def test_by_node_interval_keeps_its_coverage() -> None:
    found = [by_node(*cluster(seed, effect=1.1), 0.02).paired for seed in SEEDS]
    held = sum(
        one.low <= 1.1 <= one.high for one in found if one.low is not None and one.high is not None
    )
    assert held >= 0.92 * len(SEEDS)


def test_by_node_interval_keeps_its_coverage_for_few_nodes() -> None:
    found = [by_node(*cluster(seed, effect=1.1, nodes=4), 0.02).paired for seed in SEEDS]
    held = sum(
        one.low <= 1.1 <= one.high for one in found if one.low is not None and one.high is not None
    )
    assert 0.92 * len(SEEDS) <= held < len(SEEDS)


def test_by_node_gains_nothing_from_shuffled_node_names() -> None:
    """The control: pairing protects because of the nodes, not because it pairs."""

    def shuffled(side: list[Reading], rng: np.random.Generator) -> list[Reading]:
        names = [one.node for one in side]
        return [
            replace(one, node=str(name))
            for one, name in zip(side, rng.permutation(names), strict=True)
        ]

    found = []
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        a, b = cluster(seed)
        found.append(by_node(shuffled(a, rng), shuffled(b, rng), 0.02).paired.outcome)
    assert Counter(found)["slower"] >= 0.15 * len(SEEDS)


def reading(node: str, seconds: float, what: str = "", occasion: str = "") -> Reading:
    return Reading(node=node, occasion=occasion, what=(what,), seconds=seconds)


def two(count: int) -> ByNode:
    names = [f"n{number}" for number in range(count)]
    return by_node(
        [reading(name, 1.0) for name in names], [reading(name, 2.0) for name in names], 0.02
    )


@pytest.mark.parametrize(
    ("nodes", "word"),
    [(1, "inconclusive"), (2, "inconclusive"), (3, "likely slower"), (6, "slower")],
)
def test_by_node_is_inconclusive_for_two_nodes(nodes: int, word: str) -> None:
    found = two(nodes)
    assert found.paired.outcome == word and found.paired.ratio == pytest.approx(2.0)
    assert (found.paired.low is None) == (nodes < 3) and bool(found.remarks) == (nodes < 6)


def test_by_node_pairs_within_occasions() -> None:
    """On one day the node was three times as slow: within each day B is 10 % slower."""
    a = [
        reading("n0", seconds, occasion=day)
        for day, seconds in (("Mon", 1.0), ("Tue", 3.0), ("Fri", 3.0))
    ]
    b = [reading("n0", seconds, occasion=day) for day, seconds in (("Mon", 1.1), ("Tue", 3.3))]
    found = by_node(a, b, 0.02)
    assert found.nodes == {"n0": pytest.approx(1.1)} and (found.pairs, found.unpaired) == (2, 1)


def test_by_node_pairs_within_configurations() -> None:
    a = [reading("n0", 1.0, "batch 1"), reading("n0", 10.0, "batch 10")]
    b = [reading("n0", 1.2, "batch 1"), reading("n0", 99.0, "batch 99")]
    found = by_node(a, b, 0.02)
    assert found.nodes == {"n0": pytest.approx(1.2)} and found.naive.ratio == pytest.approx(1.2)


def test_by_node_ignores_nodes_with_one_side() -> None:
    found = by_node([reading("n0", 1.0)], [reading("n1", 2.0)], 0.02)
    assert (
        found.nodes == {}
        and found.pairs == 0
        and found.paired.outcome == "inconclusive"
        and found.spread == 2.0
    )
