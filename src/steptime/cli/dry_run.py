"""`steptime run --dry-run`: the cases of a plan, those it leaves out and why, and how long all will take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steptime.cli import output
from steptime.cli.estimate import Estimate, estimate, history
from steptime.cli.machine import newest_roofs
from steptime.cli.request import NOTHING_LEFT, store_folder, warn_of_problems
from steptime.cli.words import clock, differing
from steptime.core.case import Case
from steptime.core.plan import Plan
from steptime.store.folder import FolderStore

GUESSED = "Times of cases that never ran are rough guesses, from the network's arithmetic and the device's usual speed."
NO_ROOFS = "`steptime machine` measures what this machine can do, and makes them better."


def list_cases(plan: Plan, *, json: bool, quiet: bool) -> None:
    _check_own_networks(plan.cases)
    store = FolderStore(store_folder())
    past = history(store.attempts())
    warn_of_problems(store)
    roofs = newest_roofs()
    estimates = [estimate(case, plan.protocol, past, roofs) for case in plan.cases]
    if json:
        output.document(_document(plan, estimates))
        return
    if not plan.cases:
        output.say(f"{plan.title or plan.name}: {NOTHING_LEFT}")
        _table(plan, estimates)
        return
    least, most = (sum(getattr(guess, name) for guess in estimates) for name in ("least_seconds", "most_seconds"))
    count = "1 case" if len(plan.cases) == 1 else f"{len(plan.cases)} cases"
    output.say(f"{plan.title or plan.name}: {count}, {_range(least, most)} ({plan.protocol.profile}).")
    _table(plan, estimates)
    if not all(guess.from_history for guess in estimates):
        output.say(GUESSED if roofs else f"{GUESSED} {NO_ROOFS}")
    for line in () if quiet else plan.notes:
        output.say(f"note: {line}")


def _check_own_networks(cases: Sequence[Case]) -> None:
    """A name of the shelf is known to exist; one in a user's file is known once the file is read."""
    from steptime import workloads

    for case in {case.workload: case for case in cases if ".py:" in case.workload}.values():
        workloads.load(case.workload).describe(case)


def _document(plan: Plan, estimates: Sequence[Estimate]) -> dict[str, Any]:
    return {
        "name": plan.name,
        "protocol": plan.protocol.to_dict(),
        "cases": [
            {
                "case": case.to_dict(),
                "key": case.key,
                "seconds": [guess.least_seconds, guess.most_seconds],
                "from_history": guess.from_history,
            }
            for case, guess in zip(plan.cases, estimates, strict=True)
        ],
        "excluded": [{"case": gone.case.to_dict(), "reason": gone.reason} for gone in plan.excluded],
        "notes": plan.notes,
    }


def _table(plan: Plan, estimates: Sequence[Estimate]) -> None:
    names = differing([*plan.cases, *(gone.case for gone in plan.excluded)])

    def words(case: Case) -> list[str]:
        return [str(getattr(case, name)) for name in names]

    rows = [
        [*words(case), _range(guess.least_seconds, guess.most_seconds)]
        for case, guess in zip(plan.cases, estimates, strict=True)
    ]
    rows += [[*words(gone.case), f"excluded: {gone.reason}"] for gone in plan.excluded]
    output.table([*(name.replace("_", " ") for name in names), "time"], rows)


def _range(least: float, most: float) -> str:
    low, high = clock(least), clock(most)
    return f"about {low}" if low == high else f"about {low} to {high}"
