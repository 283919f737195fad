"""Laws and predictions: intervals keep their coverage, and a wrong law is detected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from steptime.analysis.scaling.draws import draw_typical, interval_ends
from steptime.analysis.scaling.laws import (
    Law,
    Misfit,
    NoLaw,
    amdahl,
    communication,
    gustafson,
    laws,
    predict,
)
from steptime.analysis.scaling.pause_cost import NO_COST, PauseCost
from steptime.analysis.scaling.series import Point, Series, ring_share
from steptime.core.case import Case

LATENCY, BANDWIDTH, HIDDEN, BYTES = 1e-4, 1e8, 0.05, 500_000
pytestmark = pytest.mark.slow
Curve = Callable[[int], float]
SIMULATIONS = 120


def link(devices: int) -> float:
    return 2 * (devices - 1) * LATENCY + ring_share(devices) * BYTES / BANDWIDTH


def with_link(compute: Curve, comm: Curve = link) -> Curve:
    return lambda devices: compute(devices) + max(0, comm(devices) - HIDDEN * compute(devices))


def shared(devices: int) -> float:
    return 0.005 + 0.045 / devices


def constant(_: int) -> float:
    return 0.05


def of_gustafson(devices: int) -> float:
    return 0.05 * devices / (0.1 + 0.9 * devices)


def worse(curve: Curve) -> Curve:
    """What neither Amdahl nor Gustafson knows: a cost that grows with the devices."""
    return lambda devices: curve(devices) + 0.006 * (devices - 1)


class World:
    """Draws series of which the truth is known."""

    def __init__(
        self, kind: str, step: Curve, *, compute: Curve = constant, comm: Curve = link
    ) -> None:
        self.kind, self.step, self.compute, self.comm = kind, step, compute, comm

    def series(
        self, counts: Sequence[int], rng: np.random.Generator, spread: float = 0.02, n: int = 6
    ) -> Series:
        def seen(truth: float, spread: float = spread) -> np.ndarray:
            return draw_typical(truth * np.exp(spread * rng.standard_normal(n)), rng)

        points = []
        for count in counts:
            step = seen(self.step(count))
            bare = step if count == 1 else seen(self.compute(count))
            alone = None if count == 1 else seen(self.comm(count), 2 * spread)
            batch = 64 if self.kind == "weak" else 64 // count
            told = {"step": step, "independent": bare, "exchange": alone, "exchanged_bytes": BYTES}
            points.append(Point(devices=count, batch_size=batch, **told))
        return Series(self.kind, "allreduce", Case(workload="m"), tuple(points))

    def shares(
        self, law: Callable[[Series], Law | NoLaw], counts: Sequence[int] = (1, 2, 4)
    ) -> tuple[float, float]:
        """Shares: the interval at 16 devices holds the truth, and the law is called wrong."""
        rng, hits, wrong = np.random.default_rng(1), 0, 0
        for _ in range(SIMULATIONS):
            found = law(self.series(counts, rng))
            assert isinstance(found, Law)
            low, high = interval_ends(found.step(16, None))
            hits, wrong = hits + (low <= self.step(16) <= high), wrong + bool(found.misfit)
        return hits / SIMULATIONS, wrong / SIMULATIONS


WORLDS = {
    "amdahl": (amdahl, World("strong", shared)),
    "gustafson": (gustafson, World("weak", of_gustafson)),
    "weak communication": (communication, World("weak", with_link(constant))),
    "strong communication": (communication, World("strong", with_link(shared), compute=shared)),
}


@pytest.mark.parametrize("name", WORLDS)
def test_predict_keeps_its_coverage(name: str) -> None:
    law, world = WORLDS[name]
    covered, wrong = world.shares(law)
    assert covered >= 0.91 and wrong <= 0.10


@pytest.mark.parametrize(
    "law, kind, curve", [(amdahl, "strong", shared), (gustafson, "weak", of_gustafson)]
)
def test_misfit_detects_a_wrong_law(law: Callable, kind: str, curve: Curve) -> None:
    covered, wrong = World(kind, worse(curve)).shares(law)
    assert covered <= 0.1 and wrong >= 0.9


def test_misfit_detects_an_exchange_that_is_no_ring() -> None:
    def everybody_to_everybody(devices: int) -> float:
        return 0.001 * devices * (devices - 1) ** 2

    step = with_link(constant, everybody_to_everybody)
    covered, wrong = World("weak", step, comm=everybody_to_everybody).shares(
        communication, (1, 2, 4, 8)
    )
    assert covered <= 0.1 and wrong >= 0.9


def test_misfit_detects_growing_contention() -> None:
    world = World("weak", with_link(lambda n: 0.05 + 0.01 * n), compute=lambda n: 0.05 + 0.01 * n)
    covered, wrong = world.shares(communication)
    assert covered <= 0.1 and wrong >= 0.9


def one(kind: str, counts: Sequence[int], *, spread: float = 0.001, n: int = 6) -> Series:
    world = WORLDS["weak communication" if kind == "weak" else "strong communication"][1]
    return world.series(counts, np.random.default_rng(3), spread, n)


def test_communication_finds_its_parameters() -> None:
    law = communication(one("weak", (1, 2, 4, 8)))
    assert isinstance(law, Law) and not law.misfit
    found = {name: value[0] for name, value in law.parameters.items()}
    assert found == pytest.approx(
        {
            "latency_seconds": LATENCY,
            "bandwidth_bytes_per_second": BANDWIDTH,
            "hidden_share": HIDDEN,
        },
        rel=0.1,
    )


def test_predict_with_another_bandwidth_changes_only_the_exchange() -> None:
    series = one("weak", (1, 2, 4, 8))
    law = communication(series)
    assert isinstance(law, Law)
    slower = law.step(2, BANDWIDTH / 10) - law.step(2, None)
    assert slower[0] == pytest.approx(9 * BYTES / BANDWIDTH, rel=0.05)


def behind_a_slow_link(rng: np.random.Generator) -> tuple[Series, float]:
    """A series in which a step pays a tenth of every wait again.

    Also its true step at a tenth of the bandwidth."""
    bare = constant(2)
    series = World("weak", lambda devices: bare + 1.1 * (link(devices) - HIDDEN * bare)).series(
        (1, 2, 4), rng, spread=0.005
    )
    share = draw_typical(1 + 0.1 * 0.064 / bare * np.exp(0.1 * rng.standard_normal(6)), rng) - 1
    cold = PauseCost((0.0, 0.064), (np.zeros(1), share))
    wait = 2 * LATENCY + 10 * BYTES / BANDWIDTH - HIDDEN * bare
    points = tuple(replace(point, pause_cost=cold) for point in series.points)
    return replace(series, points=points), bare + 1.1 * wait


def foretold(series: Series, truth: float) -> bool:
    law = communication(series)
    assert isinstance(law, Law)
    low, high = interval_ends(law.step(2, BANDWIDTH / 10))
    return low <= truth <= high


def test_predict_includes_the_pause_cost() -> None:
    rng = np.random.default_rng(5)
    worlds = [behind_a_slow_link(rng) for _ in range(SIMULATIONS)]
    blind = [
        (replace(s, points=tuple(replace(p, pause_cost=NO_COST) for p in s.points)), truth)
        for s, truth in worlds
    ]
    assert sum(foretold(*world) for world in worlds) >= 0.91 * SIMULATIONS
    assert sum(foretold(*world) for world in blind) <= 0.1 * SIMULATIONS


def test_communication_with_one_point_leaves_latency_and_bandwidth_open() -> None:
    law = communication(one("weak", (1, 2)))
    assert isinstance(law, Law)
    low, high = interval_ends(law.step(16, None))
    assert low < with_link(constant)(16) < high
    bandwidth_alone, latency_alone = (
        0.05 * 0.95 + link(2) * ring_share(16),
        0.05 * 0.95 + link(2) * 15,
    )
    assert (low, high) == pytest.approx((bandwidth_alone, latency_alone), rel=0.05)


def test_law_with_two_points_warns_that_nothing_checks_it() -> None:
    law = amdahl(one("strong", (1, 2)))
    assert isinstance(law, Law) and law.warnings == (
        "as many parameters as numbers of devices: nothing checks it",
    )


def test_law_needs_two_points() -> None:
    told = "too few numbers of devices that are measured in full and not oversubscribed"
    assert laws(one("strong", (1,))) == [
        NoLaw("communication", f"{told}: none"),
        NoLaw("Amdahl", f"{told}: 1"),
    ]


def test_law_ignores_oversubscribed_points() -> None:
    series = one("weak", (1, 2, 4))
    crowded = Point(**{**vars(series.points[2]), "oversubscribed": "4 threads on 2 CPUs"})
    law = gustafson(Series("weak", "allreduce", series.case, (*series.points[:2], crowded)))
    assert isinstance(law, Law) and law.devices == (1, 2)


def test_communication_needs_a_ring() -> None:
    series = one("weak", (1, 2, 4))
    law = communication(Series("weak", "parameter_server", series.case, series.points))
    assert law == NoLaw("communication", "a ring's cost is not that of parameter server")


def test_predict_is_none_for_a_wrong_law_or_a_small_batch() -> None:
    series = one("strong", (1, 2, 4))
    law = communication(series)
    assert isinstance(law, Law)
    assert predict(series, law, 64) is not None and predict(series, law, 128) is None
    wrong = Law(
        law.name, law.parameters, law.devices, law.step, worst_misfit=Misfit(0.03, "at 4 devices")
    )
    assert predict(series, wrong, 8) is None


def test_law_slightly_off_predicts_with_a_warning() -> None:
    series = one("strong", (1, 2, 4))
    law = Law(
        "Amdahl",
        {},
        (1, 2, 4),
        lambda _, __: series.first.step,
        worst_misfit=Misfit(0.01, "at 4 devices it is 1 % off"),
    )
    assert predict(series, law, 8) is not None
    assert law.warnings == ("at 4 devices it is 1 % off: predictions far beyond may miss",)


def test_predict_with_amdahl_ignores_bandwidth() -> None:
    series = WORLDS["amdahl"][1].series((1, 2, 4), np.random.default_rng(3))
    law = amdahl(series)
    assert isinstance(law, Law)
    assert predict(series, law, 8) is not None and predict(series, law, 8, 1e9) is None


def test_predict_from_few_processes_has_no_interval() -> None:
    series = one("weak", (1, 2, 4), n=2)
    law = communication(series)
    assert isinstance(law, Law) and not law.misfit
    said = predict(series, law, 8)
    assert said is not None and np.isfinite(said.speed_up[0]) and np.isnan(said.speed_up[1:]).all()


def test_communication_separates_latency_by_a_tiny_exchange() -> None:
    series, rng = one("weak", (1, 2), spread=0.01), np.random.default_rng(4)
    tiny = draw_typical(2 * LATENCY * np.exp(0.01 * rng.standard_normal(6)), rng)
    first, second = series.points
    law = communication(replace(series, points=(first, replace(second, latency=tiny))))
    assert isinstance(law, Law) and any(
        "latency is that of one number" in warning for warning in law.warnings
    )
    found = {
        name: law.parameters[name][0] for name in ("latency_seconds", "bandwidth_bytes_per_second")
    }
    assert found == pytest.approx(
        {"latency_seconds": LATENCY, "bandwidth_bytes_per_second": BANDWIDTH}, rel=0.05
    )
    low, high = interval_ends(law.step(16, None))
    before = interval_ends(_law(series).step(16, None))
    assert low < with_link(constant)(16) < high and high - low < (before[1] - before[0]) / 2


def test_communication_leaves_both_open_if_bytes_take_no_longer() -> None:
    series = one("weak", (1, 2))
    first, second = series.points
    law = communication(replace(series, points=(first, replace(second, latency=second.exchange))))
    assert isinstance(law, Law) and any(
        "does not tell latency from bandwidth" in warning for warning in law.warnings
    )


def _law(series: Series) -> Law:
    found = communication(series)
    assert isinstance(found, Law)
    return found
