"""`steptime run --dry-run`: the cases of a plan, the excluded ones and why, and the time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from steptime.cli import output
from steptime.cli.render.format import differing_settings, plural
from steptime.cli.render.table import Column, print_table
from steptime.cli.request import NOTHING_LEFT, store_folder, warn_of_problems
from steptime.core.case import SETTINGS, Case
from steptime.core.format import rough_duration
from steptime.plan.expand import Plan
from steptime.plan.validate import DEFAULTS
from steptime.run.estimate import Estimate, Peaks, estimate, history
from steptime.store.folder import FolderStore
from steptime.store.machines import newest_peaks
from steptime.workloads import check_file, is_user_file

SOURCES = {
    "history": "from earlier runs of the same case",
    "similar": "from earlier runs of a similar case",
    "guess": "rough guesses from the network's arithmetic and the device's usual speed",
}
NO_PEAKS = "`steptime machine` measures the peaks of this machine, which makes guesses better."
NOT_CHECKED = (
    "No framework was loaded: what one does not support is reported, with the reason, when it runs."
)
NOT_LOADED = "Would load and run: {}. A dry run executes no code of a file."
# A plan that takes longer is questioned.
LONG_SECONDS = 2 * 3600
QUICK_PROCESSES = 3
# Beyond it the estimate says no more than: never.
YEAR_SECONDS = 365 * 86_400
# Shown even if they have their default values.
ALWAYS_SHOWN = (
    "workload",
    "framework",
    "phase",
    "mode",
    "device",
    "precision",
    "batch_size",
)


TIME_COLUMNS = (
    Column("time", stays=True),
    Column("time from", least=16, drop=1),
    # Why a case is excluded, or its time unknown.
    Column("because", least=24),
)
# Of a case whose network is in a file that was not loaded.
UNKNOWN = "unknown"
Estimates = Sequence[Estimate | None]


def list_cases(plan: Plan, *, json: bool, quiet: bool = False) -> None:
    estimates, peaks = estimate_cases(plan)
    if json:
        output.print_json(to_document(plan, estimates))
        return
    title = plan.title or plan.name
    if not plan.cases:
        output.echo(f"{title}: {NOTHING_LEFT}")
        _show_table(plan, estimates)
        return
    count = plural(len(plan.cases), "case")
    advice = explain_long_plan(plan, estimates)
    if advice:
        output.echo(advice)
    output.echo(f"{title}: {count}, {_total_time(estimates)} ({plan.protocol.preset}).")
    _show_table(plan, estimates)
    guesses = [guess for guess in estimates if guess is not None]
    if guesses:
        output.echo(_sources(guesses, has_peaks=bool(peaks)))
    if names := _user_files(plan.cases):
        output.echo(NOT_LOADED.format(", ".join(names)))
    # To load a framework takes seconds, and is a worker's task.
    output.echo(NOT_CHECKED)
    if not quiet:
        for line in plan.notes:
            output.echo(f"note: {line}")


def explain_long_plan(plan: Plan, estimates: Estimates) -> str:
    """What to choose instead, if a plan takes hours; else empty."""
    seconds_by_case = {}
    for case, guess in zip(plan.cases, estimates, strict=True):
        if guess is not None:
            seconds_by_case[case] = guess.least_seconds
    least = sum(seconds_by_case.values())
    if least < LONG_SECONDS:
        return ""
    slowest = max(seconds_by_case, key=lambda case: seconds_by_case[case])
    slowest_seconds = seconds_by_case[slowest]
    choices = []
    if slowest.batch_size > 1:
        choices.append("a smaller batch_size")
    processes = plan.protocol.processes_least
    if processes > 1:
        smaller = "quick" if processes > QUICK_PROCESSES else "single"
        choices.append(f"--preset {smaller}")
    if len(plan.cases) > 1:
        choices.append("fewer cases (--set)")
    advice = f" Choose {' or '.join(choices)}." if choices else ""
    return (
        f"This takes {_time_range(least, least)} at least, much longer than the budget of "
        f"{rough_duration(plan.protocol.budget_seconds)} for each case. The slowest case, "
        f"{slowest.label}, takes {_time_range(slowest_seconds, slowest_seconds)}.{advice}"
    )


def estimate_cases(plan: Plan) -> tuple[list[Estimate | None], Peaks]:
    """None: the time is unknown without running the user's file, which a dry run does not."""
    for name in _user_files(plan.cases):
        check_file(name)
    store = FolderStore(store_folder())
    past = history(store.attempts())
    warn_of_problems(store)
    peaks = newest_peaks(store.path)
    estimates: list[Estimate | None] = []
    for case in plan.cases:
        if is_user_file(case.workload):
            estimates.append(None)
        else:
            estimates.append(estimate(case, plan.protocol, past, peaks))
    return estimates, peaks


def _total_time(estimates: Estimates) -> str:
    guesses = [guess for guess in estimates if guess is not None]
    least = sum(guess.least_seconds for guess in guesses)
    most = sum(guess.most_seconds for guess in guesses)
    if not guesses:
        return f"time {UNKNOWN}"
    unknown_count = len(estimates) - len(guesses)
    rest = f" and {plural(unknown_count, 'case')} of unknown time" if unknown_count else ""
    return f"{_time_range(least, most)}{rest}"


def _sources(estimates: Sequence[Estimate], *, has_peaks: bool) -> str:
    """What the times are based on."""
    counts = Counter(guess.source for guess in estimates)
    present = [source for source in SOURCES if counts[source]]
    if len(present) == 1:
        sentence = f"Times are {SOURCES[present[0]]}."
    else:
        texts = [f"{counts[source]} {SOURCES[source]}" for source in present]
        sentence = f"Times: {'; '.join(texts)}."
    if counts["guess"] and not has_peaks:
        return f"{sentence} {NO_PEAKS}"
    return sentence


def _user_files(cases: Sequence[Case]) -> list[str]:
    return sorted({case.workload for case in cases if is_user_file(case.workload)})


def to_document(plan: Plan, estimates: Estimates) -> dict[str, Any]:
    cases = []
    for case, guess in zip(plan.cases, estimates, strict=True):
        cases.append(
            {
                "case": case.to_dict(),
                "key": case.key,
                "seconds": [guess.least_seconds, guess.most_seconds] if guess else None,
                "source": guess.source if guess else UNKNOWN,
                "similar_case": guess.like.key if guess and guess.like else None,
            }
        )
    excluded = [{"case": gone.case.to_dict(), "reason": gone.reason} for gone in plan.excluded]
    return {
        "name": plan.name,
        "protocol": plan.protocol.to_dict(),
        "cases": cases,
        "excluded": excluded,
        "notes": [*filter(None, [explain_long_plan(plan, estimates)]), *plan.notes],
        "not_loaded": _user_files(plan.cases),
    }


def _show_table(plan: Plan, estimates: Estimates) -> None:
    """What varies, in a row for each case; what does not, once above the rows."""
    cases = [*plan.cases, *(gone.case for gone in plan.excluded)]
    names = differing_settings(cases, always=())
    shared = []
    for name in SETTINGS:
        # A trial is a repetition, not a setting that a user chose.
        if name in names or name == "trial":
            continue
        if name in ALWAYS_SHOWN or getattr(cases[0], name) != DEFAULTS.get(name):
            shared.append(_setting_text(cases[0], name))
    rows = []
    for case, guess in zip(plan.cases, estimates, strict=True):
        if guess is None:
            rows.append([*_values(case, names), UNKNOWN, "", "its file was not loaded"])
            continue
        time = _time_range(guess.least_seconds, guess.most_seconds)
        rows.append([*_values(case, names), time, _source(guess), ""])
    for gone in plan.excluded:
        rows.append([*_values(gone.case, names), "excluded", "", gone.reason])
    heads = [Column(name.replace("_", " ")) for name in names]
    print_table([*heads, *TIME_COLUMNS], rows, shared=shared)


def _values(case: Case, names: Sequence[str]) -> list[str]:
    return [str(getattr(case, name)) for name in names]


def _setting_text(case: Case, name: str) -> str:
    return f"{name.replace('_', ' ')} {getattr(case, name)}"


def _source(guess: Estimate) -> str:
    if guess.like is None:
        return "a guess"
    if not guess.differs:
        return "earlier runs"
    settings = [_setting_text(guess.like, name) for name in guess.differs]
    return f"runs with {', '.join(settings)}"


def _time_range(least: float, most: float) -> str:
    if least > YEAR_SECONDS:
        return "over a year"
    # Rounded first, so that equal texts are not shown as a range.
    low, high = rough_duration(least), rough_duration(most)
    return f"about {low}" if low == high else f"about {low} to {high}"
