from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from factories import make_attempt, make_record, make_times
from steptime.analysis.compare import (
    TOO_FEW,
    block_pairs,
    compare_pairs,
    compare_records,
    different_work,
    is_undecided,
    judge,
    wants_more_pairs,
)
from steptime.analysis.suite import discoveries
from steptime.core.protocol import preset
from steptime.core.record import Record

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
            p_values.append(judge(values[:count], STANDARD).p or 1.0)
        found += any(discoveries(p_values))
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
    assert found.remarks[0].startswith("invalid: recompiled")


def test_compare_records_is_at_most_likely() -> None:
    a = make_record(1)
    slow = [make_attempt(make_times(p, centre_ns=1.5e6), process=p) for p in range(8)]
    slightly = [make_attempt(make_times(p, centre_ns=1.06e6), process=p) for p in range(8)]
    found = compare_records(a, Record(attempts=tuple(slow)))
    assert found.verdict.outcome == "likely slower" and "not_interleaved" in found.remarks
    assert compare_records(a, Record(attempts=tuple(slightly))).verdict.outcome == "inconclusive"
    assert (
        compare_records(a, Record(attempts=tuple(slightly)), session_sd=0.001).verdict.outcome
        == "likely slower"
    )


def test_compare_records_is_inconclusive_for_few_processes() -> None:
    found = compare_records(make_record(1, processes=2), make_record(2, processes=2))
    assert (found.verdict.outcome, found.verdict.low) == ("inconclusive", None)
    assert (
        TOO_FEW in found.remarks
        and TOO_FEW not in compare_records(make_record(1), make_record(2)).remarks
    )


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
        ("precision", {"precision": "bf16"}),
        ("allocator", {"allocator": "stock"}),
        ("timing", {"timing": "latency"}),
        ("threads", {"threads": 2}),
        ("threads", {"facts": {"threads": 2}}),
        ("optimizer", {"network": {"fingerprint": "f", "optimizer": "adam"}}),
        ("fingerprint", {"network": {"fingerprint": "g", "optimizer": "sgd"}}),
        ("certificate", {"framework": "jax"}),
        ("invalid", {"steady": False}),
        ("invalid", {"compilations": 2}),
    ],
)
def test_different_work_names_the_difference(word: str, changes: dict[str, Any]) -> None:
    a, b = make_record(1).last, make_record(2, **changes).last
    assert word in " ".join(different_work(a, b))


def test_different_work_ignores_the_optimizer_of_inference() -> None:
    a = make_record(1, phase="inference").last
    b = make_record(2, phase="inference", network={"fingerprint": "f", "optimizer": "adam"}).last
    assert different_work(a, b) == []


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
