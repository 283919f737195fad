"""`steptime run --dry-run`: the cases of a plan, those it leaves out and why, and how long all will take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steptime.cli import output
from steptime.cli.render.format import clock, differing
from steptime.cli.request import NOTHING_LEFT, store_folder, warn_of_problems
from steptime.core.case import SETTINGS, Case
from steptime.plan.expand import Plan
from steptime.plan.validate import DEFAULTS
from steptime.run.estimate import Estimate, Peaks, estimate, history
from steptime.store.folder import FolderStore
from steptime.store.machines import newest_peaks

GUESSED = "guessed from the network's arithmetic and the device's usual speed, which is rough"
SOURCES = {
    "history": "from earlier runs of the same case",
    "similar": "learned from earlier runs of a case like it",
    "guess": GUESSED,
}
NO_PEAKS = "`steptime machine` measures what this machine can do, and makes guesses better."
NOT_ASKED = "No framework was asked: what one cannot do here is known when it runs, and told with the reason."
YEAR_SECONDS = 365 * 86_400
ALWAYS = (
    "workload",
    "framework",
    "phase",
    "mode",
    "device",
    "precision",
    "batch_size",
)  # told also where they are usual


def list_cases(plan: Plan, *, json: bool, quiet: bool = False) -> None:
    estimates, peaks = estimated(plan)
    if json:
        output.document(document(plan, estimates))
        return
    if not plan.cases:
        output.say(f"{plan.title or plan.name}: {NOTHING_LEFT}")
        _table(plan, estimates)
        return
    least, most = (
        sum(getattr(guess, name) for guess in estimates)
        for name in ("least_seconds", "most_seconds")
    )
    count = "1 case" if len(plan.cases) == 1 else f"{len(plan.cases)} cases"
    output.say(
        f"{plan.title or plan.name}: {count}, {_range(least, most)} ({plan.protocol.preset})."
    )
    _table(plan, estimates)
    output.say(_sources(estimates, NO_PEAKS if not peaks else ""))
    output.say(NOT_ASKED)  # to ask is to import it, which takes seconds and belongs to a worker
    for line in () if quiet else plan.notes:
        output.say(f"note: {line}")


def estimated(plan: Plan) -> tuple[list[Estimate], Peaks]:
    _check_own_networks(plan.cases)
    store = FolderStore(store_folder())
    past = history(store.attempts())
    warn_of_problems(store)
    peaks = newest_peaks(store.path)
    return [estimate(case, plan.protocol, past, peaks) for case in plan.cases], peaks


def _sources(estimates: Sequence[Estimate], advice: str) -> str:
    """Where the times come from: a wait is easier to bear when one knows how sure it is."""
    counts = {source: sum(guess.source == source for guess in estimates) for source in SOURCES}
    known = {source: count for source, count in counts.items() if count}
    if len(known) == 1:
        sentence = f"Times are {SOURCES[next(iter(known))]}."
    else:
        sentence = (
            f"Times: {'; '.join(f'{count} {SOURCES[source]}' for source, count in known.items())}."
        )
    return f"{sentence} {advice}".strip() if "guess" in known else sentence


def _check_own_networks(cases: Sequence[Case]) -> None:
    """A name of the shelf is known to exist; one in a user's file is known once the file is read."""
    from steptime import workloads

    for case in {case.workload: case for case in cases if ".py:" in case.workload}.values():
        workloads.load(case.workload).describe(case)


def document(plan: Plan, estimates: Sequence[Estimate]) -> dict[str, Any]:
    return {
        "name": plan.name,
        "protocol": plan.protocol.to_dict(),
        "cases": [
            {
                "case": case.to_dict(),
                "key": case.key,
                "seconds": [guess.least_seconds, guess.most_seconds],
                "from": guess.source,
                "like": guess.like.key if guess.like else None,
            }
            for case, guess in zip(plan.cases, estimates, strict=True)
        ],
        "excluded": [
            {"case": gone.case.to_dict(), "reason": gone.reason} for gone in plan.excluded
        ],
        "notes": plan.notes,
    }


def _table(plan: Plan, estimates: Sequence[Estimate]) -> None:
    """What varies, a row for each case; what does not, once above it."""
    cases = [*plan.cases, *(gone.case for gone in plan.excluded)]
    names = differing(cases, always=())
    same = [name for name in SETTINGS if name not in names and name != "trial"]
    told = [
        name for name in same if name in ALWAYS or getattr(cases[0], name) != DEFAULTS.get(name)
    ]
    output.say(f"all: {' · '.join(_told(cases[0], name) for name in told)}")
    rows = [
        [*_words(case, names), _range(guess.least_seconds, guess.most_seconds), _source(guess)]
        for case, guess in zip(plan.cases, estimates, strict=True)
    ]
    rows += [[*_words(gone.case, names), "excluded", gone.reason] for gone in plan.excluded]
    output.table([*(name.replace("_", " ") for name in names), "time", "because"], rows)


def _words(case: Case, names: Sequence[str]) -> list[str]:
    return [str(getattr(case, name)) for name in names]


def _told(case: Case, name: str) -> str:
    return f"{name.replace('_', ' ')} {getattr(case, name)}"


def _source(guess: Estimate) -> str:
    if guess.like is None:
        return "guess"
    return (
        f"like {', '.join(_told(guess.like, name) for name in guess.differs)}"
        if guess.differs
        else "as before"
    )


def _range(least: float, most: float) -> str:
    if least > YEAR_SECONDS:
        return "over a year"
    low, high = clock(least), clock(most)
    return f"about {low}" if low == high else f"about {low} to {high}"
