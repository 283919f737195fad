"""`steptime profile`: where a step's time and memory go, by a process of its own that times nothing else."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steptime.cli import output
from steptime.cli.render.format import settings
from steptime.cli.render.watch import Progress
from steptime.cli.request import read_plan, store_folder, warn_of_problems
from steptime.core.case import Case
from steptime.core.errors import SteptimeError
from steptime.core.format import byte_count, digits, duration

if TYPE_CHECKING:
    from steptime.analysis.step_profile import Part, Profile
    from steptime.store.folder import FolderStore

FAILED = 3
MOST = 12  # operators that are shown; --json has more
LEAST_SHARE = 0.0005


def profile_command(
    run: Annotated[
        str, typer.Argument(help="Id of a stored result: its case is used.", show_default=False)
    ] = "",
    workload: Annotated[
        str, typer.Option(help="A network's name, or FILE.py:NAME.", show_default=False)
    ] = "",
    phase: Annotated[
        str, typer.Option(help="training, inference or forward.", show_default=False)
    ] = "",
    batch_size: Annotated[
        str, typer.Option(help="How many samples a step takes.", show_default=False)
    ] = "",
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="key=value, any setting; repeatable.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Where a step's time and memory go.

    Phases, operators, memory at its peak and a trace, measured by a process of its own: looking disturbs, so nothing
    here is a result of speed. The guide shows them on the page of the same case's runs."""
    from steptime.analysis.step_profile import profile
    from steptime.run.single import profile as run_profile
    from steptime.store.folder import FolderStore

    flags = {"workload": workload, "phase": phase, "batch_size": batch_size}
    words = [*(f"{name}={value}" for name, value in flags.items() if value), *(set_ or [])]
    store = FolderStore(store_folder())
    case = _case(run, words, store)
    with Progress() as progress:
        progress.show(f"looking inside a step: {case.label} …")
        attempt = run_profile(case, store)
    found = profile(attempt)
    if json:
        failure = {"failure": vars(attempt.failure)} if attempt.failure else {}
        output.document(
            {"id": attempt.id, "case": case.to_dict(), **(found.found if found else {}), **failure}
        )
    elif found is not None:
        _show(found, store)
    if attempt.failure is not None:
        output.warn(f"failed: {case.label}: {attempt.failure.cause}. {attempt.failure.reason}")
        raise typer.Exit(FAILED)


def _case(run: str, words: list[str], store: FolderStore) -> Case:
    if not run:
        cases = read_plan("", settings(words)).cases
        if len(cases) != 1:
            raise SteptimeError(f"Profile one case at a time; these settings give {len(cases)}.")
        return cases[0]
    if words:
        raise SteptimeError("Name a stored result, or settings, not both.")
    found = store.find(run)
    warn_of_problems(store)
    if len(found) != 1:
        count = f"{len(found)} results have" if found else "No result has"
        raise SteptimeError(
            f"{count} the id {run!r} in {store.path}; `steptime list results` shows what is there."
        )
    return found[0].case


def _show(profile: Profile, store: FolderStore) -> None:
    output.say(f"{profile.attempt.case.label}\n{profile.sentence}\n")
    _times("phase", profile.phases)
    _times("class of operators", profile.classes)
    _operators(profile.operators)
    if profile.memory:
        rows = [[part.name, byte_count(int(part.amount)), _share(part)] for part in profile.memory]
        output.table(["memory at the peak", "held", "share"], rows, right=["held", "share"])
        output.say()
    for remark in [
        *profile.remarks,
        *(f"No {name}: {why}" for name, why in profile.absent.items()),
    ]:
        output.say(remark)
    guide = f"steptime --store {shlex.quote(str(store.path))} guide"
    output.say(
        f"Stored in {store.path}; the page of the same case's run shows it, with the timeline: {guide}"
    )


def _times(title: str, parts: list[Part]) -> None:
    rows = [
        [one.name, duration(one.amount), _share(one)] for one in parts if one.share >= LEAST_SHARE
    ]
    if rows:
        output.table([title, "per step", "share"], rows, right=["per step", "share"])
        output.say()


def _operators(operators: list[dict[str, Any]]) -> None:
    shown = [one for one in operators if one["share"] >= LEAST_SHARE][:MOST]
    rows = [
        [
            one["name"][:60],
            one["class"],
            digits(one["calls"]),
            duration(one["seconds"]),
            f"{100 * one['share']:.1f} %",
        ]
        for one in shown
    ]
    if rows:
        right = ["calls", "per step", "share"]
        output.table(["operator", "class", *right], rows, right=right)
        output.say()


def _share(part: Part) -> str:
    return f"{100 * part.share:.1f} %"
