"""How often the printed interval holds the long-run typical value: docs/results/coverage.md.

Simulated sessions run through the stopping rule, the interval and the flags of steptime itself.
Recorded sessions of one case are replayed in all windows of successive processes.

    python benchmarks/interval_coverage.py docs/results/coverage.md"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from steptime.analysis import intervals
from steptime.analysis.estimates import typical_time
from steptime.analysis.flags import timing
from steptime.analysis.stopping import is_enough, planned_looks
from steptime.core.protocol import preset

Numbers = NDArray[np.float64]
# A noise makes sessions (rows) of successive processes (columns), in standard deviations.
Noise = Callable[[np.random.Generator, int, int], Numbers]

STANDARD = preset("standard")
MOST = STANDARD.processes_most
SESSIONS = 2_000
SPREADS = (0.003, 0.01, 0.02)
# So many cases in random order make the processes of one of them practically independent.
MANY_CASES = 100
# A recorded window needs as many processes as an interval.
LEAST_WINDOW = 6
TRUTH_DRAWS = 400_000
# The slowest one last: the first that is raised decides.
FLAGS = (timing.unstable, timing.bimodal, timing.session_drift)
RECORDED = Path(__file__).parents[1] / "tests" / "fixtures" / "successive-processes.json"


def independent(rng: np.random.Generator, rows: int, columns: int) -> Numbers:
    return rng.standard_normal((rows, columns))


def correlated(correlation: float) -> Noise:
    """First-order autoregressive, from its long-run distribution on."""

    def draw(rng: np.random.Generator, rows: int, columns: int) -> Numbers:
        shocks = (1 - correlation**2) ** 0.5 * rng.standard_normal((rows, columns + 100))
        series: Numbers = lfilter([1.0], [1.0, -correlation], shocks, axis=1)[:, 100:]
        return series

    return draw


def drifting(rng: np.random.Generator, rows: int, columns: int) -> Numbers:
    """Up or down by three standard deviations over the longest session; the truth is its middle."""
    direction = rng.choice([-1.0, 1.0], (rows, 1))
    course = 3 * (np.arange(columns) / (MOST - 1) - 0.5)
    return rng.standard_normal((rows, columns)) + direction * course


def waving(rng: np.random.Generator, rows: int, columns: int) -> Numbers:
    """A slow wave of three standard deviations, as long as the longest session."""
    phases = rng.uniform(0, 2 * np.pi, (rows, 1))
    wave = 1.5 * np.sin(2 * np.pi * np.arange(columns) / MOST + phases)
    return rng.standard_normal((rows, columns)) + wave


def two_modes(share: float, gap: float) -> Noise:
    """This share of the processes is slower by `gap` standard deviations."""

    def draw(rng: np.random.Generator, rows: int, columns: int) -> Numbers:
        slow = rng.random((rows, columns)) < share
        return rng.standard_normal((rows, columns)) + gap * slow

    return draw


def heavy_tailed(rng: np.random.Generator, rows: int, columns: int) -> Numbers:
    return rng.standard_t(3, (rows, columns))


def disturbed(rng: np.random.Generator, rows: int, columns: int) -> Numbers:
    """One process in ten is slower, by ten standard deviations on average."""
    slow = rng.random((rows, columns)) < 0.1
    return rng.standard_normal((rows, columns)) + slow * rng.exponential(10, (rows, columns))


UNORDERED: dict[str, Noise] = {
    "independent": independent,
    "heavy-tailed (t with 3 degrees of freedom)": heavy_tailed,
    "one in ten disturbed": disturbed,
    "two modes, 50/50, 10 sd apart": two_modes(0.5, 10),
    "two modes, 70/30, 6 sd apart": two_modes(0.3, 6),
    "two modes, 70/30, 20 sd apart": two_modes(0.3, 20),
}
ORDERED: dict[str, Noise] = {
    "AR(1) 0.3": correlated(0.3),
    "AR(1) 0.5": correlated(0.5),
    "AR(1) 0.8": correlated(0.8),
    "drifting by 3 sd": drifting,
    "slow wave of 3 sd": waving,
}
# The long-run centre of these is 0 whatever the session sees.
CENTRED = {"independent", "heavy-tailed (t with 3 degrees of freedom)", *ORDERED}


@dataclass(frozen=True)
class Coverage:
    """Shares of sessions, or of windows."""

    held: float
    flagged: float
    held_or_flagged: float
    processes: float  # mean number


def simulate(name: str, spread: float, *, cases: int = 1, sessions: int = SESSIONS) -> Coverage:
    """Sessions of `cases` cases in turn, of which one has this noise.

    Noises without an order need no processes in between."""
    step = cases if name in ORDERED else 1
    rows, truth = draw_sessions(name, spread, sessions, step)
    return summarise([run_session(row, cases) for row in rows], truth)


def draw_sessions(name: str, spread: float, sessions: int, step: int = 1) -> tuple[Numbers, float]:
    """The medians of every `step`-th process, and their long-run centre."""
    noise = (UNORDERED | ORDERED)[name]
    # Every cell of the table has noise of its own.
    rng = np.random.default_rng(list(f"{name} {spread}".encode()))
    units = noise(rng, sessions, MOST * step)[:, ::step]
    return 1 + spread * units, 1 + spread * true_centre(name, noise)


def true_centre(name: str, noise: Noise) -> float:
    """The pseudo-median: the centre that Hodges and Lehmann's estimate tends to."""
    if name in CENTRED:
        return 0.0
    draws = noise(np.random.default_rng(0), TRUTH_DRAWS, 2)
    return float(np.median(draws.mean(axis=1)))


def run_session(seconds: Numbers, cases: int = 1) -> list[Any]:
    """The processes of a session that measures until it is enough."""
    for count in planned_looks(STANDARD):
        processes = as_processes(seconds[:count], cases)
        if is_enough(count, typical_time(processes).half_width, STANDARD):
            break
    return processes


def holds(processes: Sequence[Any], truth: float) -> bool:
    """Whether the printed interval holds the truth."""
    estimate = typical_time(processes)
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low <= truth <= estimate.high


def as_processes(seconds: Numbers, cases: int = 1) -> list[Any]:
    """All that the interval and the flags look at in a process."""
    processes = []
    for number, typical in enumerate(seconds):
        environment = {"session_process": cases * number}
        attempt = SimpleNamespace(started="", protocol=STANDARD, environment=environment)
        processes.append(SimpleNamespace(typical=float(typical), attempt=attempt))
    return processes


def summarise(sessions: Sequence[Sequence[Any]], truth: float) -> Coverage:
    held = np.array([holds(processes, truth) for processes in sessions])
    flagged = np.array([any(rule(processes) for rule in FLAGS) for processes in sessions])
    return Coverage(
        held=float(held.mean()),
        flagged=float(flagged.mean()),
        held_or_flagged=float((held | flagged).mean()),
        processes=float(np.mean([len(processes) for processes in sessions])),
    )


def replay(seconds: Numbers, sizes: Sequence[int], *, cases: int = 1) -> Coverage:
    """All windows of so many successive processes; the truth is the centre of all processes.

    Many cases: the interval that holds for independent processes."""
    sessions = [as_processes(window, cases) for window in windows(seconds, sizes)]
    return summarise(sessions, intervals.typical(seconds))


def windows(seconds: Numbers, sizes: Sequence[int]) -> Iterator[Numbers]:
    for size in sizes:
        for first in range(len(seconds) - size + 1):
            yield seconds[first : first + size]


def mean_coverage(noise: Noise, count: int, sessions: int = SESSIONS) -> float:
    """How often Student's interval of the mean of so many processes holds the long-run mean."""
    truth = float(noise(np.random.default_rng(0), TRUTH_DRAWS, 1).mean())
    rows = noise(np.random.default_rng(1), sessions, count)
    held = 0
    for row in rows:
        interval = intervals.student(row, STANDARD.look_alpha)
        assert interval is not None
        held += interval.low <= truth <= interval.high
    return held / sessions


def recorded_series() -> dict[str, Numbers]:
    document = json.loads(RECORDED.read_text())
    return {entry["case"]: np.array(entry["median_seconds"]) for entry in document["series"]}


def page() -> Iterator[str]:
    yield HEAD
    yield from alone_table()
    yield from interleaved_table()
    yield from recorded_tables()
    yield from mean_table()


HEAD = f"""# Coverage of the interval

How often the printed interval holds the long-run typical value. The command

    python benchmarks/interval_coverage.py docs/results/coverage.md

writes this page; tests repeat its claims with fewer sessions. The rules are in
[METHOD.md](../../METHOD.md), sections 4, 5 and 12.

Simulated: {SESSIONS:,} seeded sessions per cell, preset `standard`, through the stopping rule, the
interval and the flags of steptime itself. *Spread* is the standard deviation (sd) of the process
medians. *Held*: the interval holds the long-run centre. *Flagged*: `session_drift`, `bimodal` or
`unstable`. *As if independent*: coverage without the widening."""


def alone_table() -> Iterator[str]:
    yield "\n## One case alone\n"
    yield "| noise | spread | held | flagged | held or flagged | processes | as if independent |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for name in UNORDERED | ORDERED:
        for spread in SPREADS:
            coverage = simulate(name, spread)
            naive = simulate_naive(name, spread)
            yield f"| {name} | {percent(spread)} | {cells(coverage)} | {percent(naive)} |"


def simulate_naive(name: str, spread: float, sessions: int = SESSIONS) -> float:
    """Successive processes, taken as if they were those of one of many cases."""
    rows, truth = draw_sessions(name, spread, sessions)
    return float(np.mean([holds(run_session(row, MANY_CASES), truth) for row in rows]))


def interleaved_table() -> Iterator[str]:
    yield "\n## Several cases in random order\n"
    prose = "The processes of two cases alternate, so those of one case are two apart."
    yield wrap(f"{prose} With {MANY_CASES} cases they are independent.\n")
    yield "| noise | cases | spread | held | flagged | held or flagged | processes |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for name, cases in [*((name, MANY_CASES) for name in UNORDERED), ("AR(1) 0.8", 2)]:
        for spread in SPREADS:
            coverage = simulate(name, spread, cases=cases)
            yield f"| {name} | {cases} | {percent(spread)} | {cells(coverage)} |"


def recorded_tables() -> Iterator[str]:
    document = json.loads(RECORDED.read_text())
    yield "\n## Recorded processes of one case\n"
    prose = f"{document['description']} All windows of successive processes; the truth is the"
    yield wrap(f"{prose} centre of all processes of the series. Most flags are `unstable`.\n")
    yield "| case | processes | correlation | windows of | held | flagged | held or flagged |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for name, seconds in recorded_series().items():
        for sizes in size_classes(len(seconds)):
            coverage = replay(seconds, sizes)
            lag = np.corrcoef(seconds[1:], seconds[:-1])[0, 1]
            head = f"| {name} | {len(seconds)} | {lag:.2f} | {sizes[0]} to {sizes[-1]}"
            yield f"{head} | {shares(coverage)} |"
    held = []
    for seconds in recorded_series().values():
        held.append(percent(replay(seconds, range(6, 11), cases=MANY_CASES).held))
    prose = "\nAs if independent, the same windows of 6 to 10 processes hold it in"
    yield wrap(f"{prose} {', '.join(held)}.")


def size_classes(count: int) -> list[range]:
    return [range(LEAST_WINDOW, 11), range(11, 21), range(21, count + 1)]


def mean_table() -> Iterator[str]:
    yield "\n## Why the mean has no interval\n"
    prose = "Coverage of Student's interval (alpha 0.035) for the mean of independent processes."
    yield wrap(
        f"{prose} If rare slow processes make a mean, a few processes may have none of them.\n"
    )
    yield "| noise | 6 processes | 8 | 15 | 36 |"
    yield "|---|--:|--:|--:|--:|"
    for name, noise in UNORDERED.items():
        row = [percent(mean_coverage(noise, count)) for count in (6, 8, 15, 36)]
        yield f"| {name} | {' | '.join(row)} |"


def wrap(prose: str) -> str:
    """At 100 columns; empty lines at its ends stay."""
    text = textwrap.fill(prose.strip(), 100)
    return prose.replace(prose.strip(), text)


def cells(coverage: Coverage) -> str:
    return f"{shares(coverage)} | {coverage.processes:.0f}"


def shares(coverage: Coverage) -> str:
    numbers = (coverage.held, coverage.flagged, coverage.held_or_flagged)
    return " | ".join(percent(number) for number in numbers)


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text("\n".join(page()) + "\n")
