"""`steptime profile`: where the time and memory of a step go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from steptime.cli import exit_codes, output
from steptime.cli.options import (
    Device,
    Framework,
    Json,
    Mode,
    Phase,
    Precision,
    Settings,
    Workload,
)
from steptime.cli.render.watch import Progress
from steptime.cli.request import collect_settings, read_case, store_folder, warn_of_problems
from steptime.core.case import Case
from steptime.core.errors import SteptimeError

if TYPE_CHECKING:
    from steptime.store.folder import FolderStore


def profile_command(
    run: Annotated[
        str, typer.Argument(help="Id of a stored result, whose case is used.", show_default=False)
    ] = "",
    workload: Workload = "",
    phase: Phase = "",
    batch_size: Annotated[
        str, typer.Option(metavar="N", help="How many samples a step takes.", show_default=False)
    ] = "",
    framework: Framework = "",
    mode: Mode = "",
    precision: Precision = "",
    device: Device = "",
    set_: Settings = None,
    json: Json = False,
) -> None:
    """Profile a step: where its time and memory go.

    Shows phases, operators and memory at its peak, and stores a trace. A process of its own does
    this: profiling disturbs a step, so nothing here counts as a measurement. The guide shows the
    profile on the page of the same case."""
    from steptime.analysis.step_profile import read_profile
    from steptime.cli.render.profile import show
    from steptime.run.single import profile as run_profile
    from steptime.store.folder import FolderStore

    flags = {"workload": workload, "phase": phase, "batch_size": batch_size}
    flags |= {"framework": framework, "mode": mode, "precision": precision, "device": device}
    settings = collect_settings(set_, flags)
    store = FolderStore(store_folder())
    case = _case(run, settings, store)
    with Progress() as progress:
        progress.show(f"profiling a step: {case.label} …")
        attempt = run_profile(case, store)
    step_profile = read_profile(attempt)
    if json:
        document: dict[str, Any] = {"id": attempt.id, "case": case.to_dict()}
        if step_profile:
            document |= step_profile.findings
        if attempt.failure:
            document["failure"] = vars(attempt.failure)
        output.print_json(document)
    elif step_profile is not None:
        show(step_profile, store.path)
    # After the output: a profile may be partial.
    if attempt.failure is not None:
        output.warn(f"failed: {case.label}: {attempt.failure.cause}. {attempt.failure.reason}")
        raise typer.Exit(exit_codes.ALL_FAILED)


def _case(identifier: str, settings: dict[str, Any], store: FolderStore) -> Case:
    if not identifier:
        return read_case("Profile", settings)
    if settings:
        raise SteptimeError("Name a stored result or settings, not both.")
    records = store.find(identifier)
    warn_of_problems(store)
    if len(records) != 1:
        count = f"{len(records)} results have" if records else "No result has"
        raise SteptimeError(
            f"{count} the id {identifier!r} in {store.path}; `steptime list results` shows the ids."
        )
    return records[0].case
