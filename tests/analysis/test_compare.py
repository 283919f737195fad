from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from factories import make_attempt, make_record
from steptime.analysis.compare import (
    block_pairs,
    compare_pairs,
    different_work,
    is_undecided,
    judge,
    looks_alpha,
    refusal_reasons,
    wants_more_pairs,
)
from steptime.analysis.stored import adjust_p_values
from steptime.core.protocol import preset

Make = Callable[..., Any]
STANDARD = preset("standard")
REPLAYED = replace(STANDARD, pair_looks=(8, 12))
SESSIONS = 2000
CNN = ["aa_cnn_pinned_malloc_pinned_cpu", "aa_cnn_stock_malloc", "aa_cnn_stock_malloc_pinned_cpu"]
MLP = "aa_mlp_stock_malloc"


def verdicts(
    draw: Callable[[np.random.Generator], np.ndarray], protocol: Any, seed: int = 0
) -> list[tuple[str, int]]:
    """Words and numbers of pairs of many sessions that each end by the real rule."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(SESSIONS):
        values = draw(rng)
        count = next(n for n in protocol.pair_looks if not is_undecided(values[:n], protocol))
        found.append((judge(values[:count], protocol).outcome, count))
    return found


def share(found: list[tuple[str, int]], *words: str) -> float:
    return float(np.mean([word in words for word, _ in found]))


def replayed(
    bank: Make, file: str, metric: str, change: float = 1.0
) -> Callable[[np.random.Generator], np.ndarray]:
    """Pairs in random order. A coin decides which of two identical workers is B, as live."""
    blocks = np.log(bank(file)[metric])
    values = np.median(blocks[..., 1] - blocks[..., 0], axis=1)
    coin = np.array([-1, 1])
    return lambda rng: rng.permutation(values)[:12] * rng.choice(coin, 12) + math.log(change)


@pytest.mark.parametrize("metric", ["med", "cpu"])
@pytest.mark.parametrize("file", [*CNN, MLP])
def test_judge_seldom_alarms_for_identical_workers_on_a_noisy_machine(
    file: str, metric: str, bank: Make
) -> None:
    assert share(verdicts(replayed(bank, file, metric), REPLAYED), "faster", "slower") <= 0.05


def test_judge_detects_two_percent_in_a_short_step(bank: Make) -> None:
    found = verdicts(replayed(bank, MLP, "med", 1.02), REPLAYED)
    assert share(found, "slower") >= 0.85
    assert share(found, "faster") == 0


def test_judge_detects_five_percent_of_cpu_time(bank: Make) -> None:
    assert share(verdicts(replayed(bank, CNN[0], "cpu", 1.05), REPLAYED), "slower") >= 0.95


def law(
    name: str, spread: float, change: float = 0.0
) -> Callable[[np.random.Generator], np.ndarray]:
    def draw(rng: np.random.Generator) -> np.ndarray:
        noise = rng.standard_t(3, 27) / 3**0.5 if name == "t3" else rng.standard_normal(27)
        if name == "disturbed":
            noise *= np.where(rng.random(27) < 0.1, 6, 1)
        return spread * noise + change

    return draw


@pytest.mark.parametrize("spread", [0.005, 0.015, 0.03])
@pytest.mark.parametrize("name", ["normal", "t3", "disturbed"])
def test_judge_seldom_alarms_for_any_noise(name: str, spread: float) -> None:
    assert share(verdicts(law(name, spread), STANDARD, seed=2), "faster", "slower") <= 0.05


def test_judge_detects_two_percent_with_few_pairs() -> None:
    found = verdicts(law("normal", 0.015, math.log(1.02)), STANDARD)
    assert share(found, "slower") >= 0.95
    assert np.mean([count for _, count in found]) <= 10


def test_discoveries_are_few_over_a_suite_of_equal_pairs() -> None:
    rng, suites = np.random.default_rng(5), 100
    found = 0
    for _ in range(suites):
        p_values = []
        for _ in range(20):
            values = 0.02 * rng.standard_t(3, 27)
            count = next(n for n in STANDARD.pair_looks if not is_undecided(values[:n], STANDARD))
            p_values.append(judge(values[:count], STANDARD).p)
        found += any(p is not None and p <= 0.05 for p in adjust_p_values(p_values))
    assert found / suites <= 0.05


@pytest.mark.parametrize(
    ("values", "word"),
    [
        (np.linspace(0.01, 0.03, 8), "slower"),
        (np.linspace(-0.03, -0.01, 8), "faster"),
        (np.linspace(-0.01, 0.01, 8), "same"),
        (np.linspace(-0.1, 0.1, 8), "inconclusive"),
        (np.linspace(0.01, 0.03, 7), "inconclusive"),
    ],
)
def test_outcome_of_follows_from_the_interval(values: np.ndarray, word: str) -> None:
    found = judge(values, STANDARD)
    assert found.outcome == word
    assert found.ratio == pytest.approx(math.exp(values.mean()))


def test_is_undecided_stops_only_at_planned_looks() -> None:
    clear = np.linspace(0.05, 0.06, 12)
    assert [is_undecided(clear[:n], STANDARD) for n in (7, 8, 9, 12)] == [True, False, True, False]
    assert not is_undecided(np.linspace(-1, 1, 27), STANDARD)


def pair(word: str, *, ratio: float = 1.05, seed: int = 0, **changes: Any) -> tuple[Any, Any]:
    """Both feel the same slow drift, which is far larger than their difference."""
    rng = np.random.default_rng(seed)
    drift = np.repeat(np.exp(rng.normal(0, 0.3, 4)), 10)
    a, b = (
        np.rint(1e6 * r * drift * np.exp(0.005 * rng.standard_normal(40))).astype(int)
        for r in (1.0, ratio)
    )
    first = make_attempt(a, blocks=4, pair=word, id=f"a{word}", **changes)
    return first, make_attempt(b, blocks=4, pair=word, id=f"b{word}", **changes)


def test_compare_pairs_cancels_common_drift() -> None:
    pairs = [pair(str(i), seed=i) for i in range(8)]
    found = compare_pairs(pairs)
    assert (found.verdict.outcome, found.units) == ("slower", 8)
    assert found.verdict.ratio == pytest.approx(1.05, abs=0.01)
    assert found.verdict.low is not None and found.verdict.low > 1
    assert not wants_more_pairs(pairs) and wants_more_pairs(pairs[:7]) and wants_more_pairs([])


def test_compare_pairs_remarks_contention_and_judges_cpu_time() -> None:
    found = compare_pairs([pair(str(i), seed=i, queue_ns=5_000_000) for i in range(8)])
    assert found.remarks[0].startswith("contended: a thread was ready but not running")
    assert found.cpu_time is not None and found.cpu_time.outcome == "slower"


def test_compare_pairs_skips_cpu_time_of_several_threads() -> None:
    assert compare_pairs([pair(str(i), seed=i, threads=2) for i in range(8)]).cpu_time is None


def test_compare_pairs_is_inconclusive_for_invalid_processes() -> None:
    found = compare_pairs([pair(str(i), seed=i, compilations=1) for i in range(8)])
    assert (found.verdict.outcome, found.cpu_time) == ("inconclusive", None)
    assert (found.verdict.low, found.verdict.p) == (None, None)
    assert found.remarks[0].startswith("invalid: recompiled")


def test_different_work_is_empty_for_equal_work() -> None:
    a, b = make_record(1).last, make_record(2, mode="compiled", layout="nhwc").last
    assert different_work(a, b) == []


def test_different_work_needs_no_measurement() -> None:
    a, b = (replace(make_record(seed).last, measurement=None) for seed in (1, 2))
    assert different_work(a, b) == []


@pytest.mark.parametrize(
    ("word", "changes"),
    [
        ("phase", {"phase": "inference"}),
        ("batch_size", {"batch_size": 64}),
        ("ranks", {"exchange": "independent", "devices": 2}),
        ("data", {"data": "host"}),
        ("allocator", {"allocator": "stock"}),
        ("timing", {"timing": "latency"}),
        ("threads", {"threads": 2}),
        ("threads", {"facts": {"threads": 2}}),
        ("optimizer", {"network": {"fingerprint": "f", "optimizer": "adam"}}),
        ("fingerprint", {"network": {"fingerprint": "g", "optimizer": "sgd"}}),
        ("certificate", {"framework": "jax"}),
    ],
)
def test_different_work_names_the_difference(word: str, changes: dict[str, Any]) -> None:
    a, b = make_record(1).last, make_record(2, **changes).last
    assert word in " ".join(different_work(a, b))


def test_different_work_ignores_the_optimizer_of_inference() -> None:
    a = make_record(1, phase="inference").last
    b = make_record(2, phase="inference", network={"fingerprint": "f", "optimizer": "adam"}).last
    assert different_work(a, b) == []


def test_different_work_allows_another_precision() -> None:
    a, b = make_record(1).last, make_record(2, precision="int8").last
    assert different_work(a, b) == []


@pytest.mark.parametrize("changes", [{"steady": False}, {"compilations": 2}], ids=str)
@pytest.mark.parametrize("invalid", ["a", "b"])
def test_refusal_reasons_include_invalid_processes_of_either_side(
    invalid: str, changes: dict[str, Any]
) -> None:
    sides = {"a": list(make_record(1).attempts), "b": list(make_record(2).attempts)}
    sound = refusal_reasons(sides["a"], sides["b"])
    # Not the last process, and a third of all.
    sides[invalid][:3] = make_record(3, processes=3, **changes).attempts
    reasons = refusal_reasons(sides["a"], sides["b"])
    assert sound == [] and len(reasons) == 1 and "is invalid" in reasons[0]


def test_refusal_reasons_see_a_process_with_other_threads() -> None:
    a, b = list(make_record(1).attempts), list(make_record(2).attempts)
    b[2] = make_record(3, facts={"threads": 2}).attempts[0]
    assert refusal_reasons(a, b) == ["threads differs: 1 and 2"]


def agrees(verdict: Any) -> bool:
    """Whether verdict, interval and p-value say the same."""
    differs = verdict.outcome in ("faster", "slower")
    excludes = verdict.low is not None and (verdict.low > 1 or verdict.high < 1)
    small = verdict.p is not None and verdict.p <= verdict.alpha
    return differs == excludes == small


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("looks", [STANDARD.pair_looks, (8,), (6, 20)], ids=str)
def test_judge_agrees_with_its_p_value_and_interval(looks: tuple[int, ...], ties: bool) -> None:
    protocol = replace(STANDARD, pair_looks=looks)
    rng = np.random.default_rng(3)
    outcomes = set()
    for _ in range(1500):
        values = rng.normal(rng.choice([0.0, 0.01, 0.02]), 0.02, rng.choice(looks))
        verdict = judge(np.round(values, 2) if ties else values, protocol)
        outcomes.add(verdict.outcome)
        assert agrees(verdict)
    assert {"slower", "faster", "inconclusive"} <= outcomes


def test_judge_disagreed_before() -> None:
    """Negative control: p times the number of looks, as before, contradicts the interval."""
    values = np.array([0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, -0.005])
    verdict = judge(values, STANDARD)
    assert verdict.outcome == "slower" and verdict.p is not None
    old = 4 * verdict.p / (verdict.alpha / STANDARD.pair_alpha)
    assert verdict.p <= 0.05 < old


def test_judge_names_the_level_of_its_interval() -> None:
    verdict = judge(np.linspace(0.01, 0.03, 8), STANDARD)
    assert (verdict.level, verdict.alpha) == (0.98, 0.05)


def test_looks_alpha_is_bonferroni_for_other_looks() -> None:
    assert looks_alpha(STANDARD) == 0.05
    assert looks_alpha(replace(STANDARD, pair_looks=(8,))) == 0.02
    assert looks_alpha(replace(STANDARD, pair_looks=(8, 12))) == 0.04


def test_judge_has_p_values_that_are_seldom_small_by_chance() -> None:
    """For every level, not only for 5 %."""
    rng = np.random.default_rng(11)
    p_values = []
    for _ in range(SESSIONS):
        values = rng.standard_normal(27)
        count = next(n for n in STANDARD.pair_looks if not is_undecided(values[:n], STANDARD))
        p_values.append(judge(values[:count], STANDARD).p)
    for level in (0.01, 0.02, 0.05, 0.1, 0.5):
        scatter = 2 * math.sqrt(level / SESSIONS)
        assert np.mean(np.array(p_values) <= level) <= level + scatter


def autoregressive_pairs(coin: bool) -> Callable[[np.random.Generator], np.ndarray]:
    """Pairs of processes one after the other on a machine with AR(0.5) noise."""

    def draw(rng: np.random.Generator) -> np.ndarray:
        noise = rng.standard_normal(54)
        for i in range(1, 54):
            noise[i] = 0.5 * noise[i - 1] + math.sqrt(0.75) * noise[i]
        later = 0.1 * (noise[1::2] - noise[::2])
        signs = rng.choice([-1, 1], 27) if coin else np.where(np.arange(27) % 2, -1, 1)
        return later * signs

    return draw


def persistent_pairs(coin: bool) -> Callable[[np.random.Generator], np.ndarray]:
    """AR(0.5) from pair to pair, of whichever worker is first; the coin decides which is B."""

    def draw(rng: np.random.Generator) -> np.ndarray:
        noise = rng.standard_normal(27)
        for i in range(1, 27):
            noise[i] = 0.5 * noise[i - 1] + math.sqrt(0.75) * noise[i]
        return 0.1 * noise * (rng.choice([-1, 1], 27) if coin else 1)

    return draw


@pytest.mark.parametrize("pairs", [autoregressive_pairs, persistent_pairs])
def test_judge_seldom_alarms_for_dependent_pairs_in_random_order(pairs: Any) -> None:
    found = verdicts(pairs(coin=True), STANDARD, seed=5)
    assert share(found, "faster", "slower") <= 0.055


@pytest.mark.parametrize(
    ("pairs", "least"), [(autoregressive_pairs, 0.06), (persistent_pairs, 0.2)]
)
def test_judge_needs_the_coin_for_dependent_pairs(pairs: Any, least: float) -> None:
    """Negative control: in a fixed order the same noise alarms more often."""
    assert share(verdicts(pairs(coin=False), STANDARD, seed=5), "faster", "slower") > least


def turning(*, inside: float, outside: float, pairs: int = 6) -> list[Any]:
    """Pairs whose ratio varies by `inside` between blocks and by `outside` between pairs."""
    rng = np.random.default_rng(4)
    made = []
    for _ in range(pairs):
        blocks = np.exp(outside * rng.standard_normal() + inside * rng.standard_normal(8))
        times = np.repeat(1e6 * blocks, 20).astype(np.int64)
        made.append((make_attempt(np.full(160, 10**6), blocks=8), make_attempt(times, blocks=8)))
    return made


def test_block_pairs_grow_if_blocks_vary() -> None:
    assert block_pairs(turning(inside=0.2, outside=0.0), STANDARD) == STANDARD.pair_blocks_most


def test_block_pairs_stay_few_if_pairs_vary() -> None:
    assert block_pairs(turning(inside=0.001, outside=0.05), STANDARD) == STANDARD.pair_blocks


def test_block_pairs_start_with_the_protocol_value() -> None:
    assert block_pairs(turning(inside=0.2, outside=0.0, pairs=2), STANDARD) == STANDARD.pair_blocks
