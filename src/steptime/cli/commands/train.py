"""`steptime train`: a network learns from its real data set, and its weights are kept for inference anywhere."""

from __future__ import annotations

import json as json_text
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steptime.cli import output
from steptime.cli.render.format import clock, settings
from steptime.cli.render.watch import Progress
from steptime.cli.request import read_plan, store_folder
from steptime.core.errors import SteptimeError
from steptime.core.format import digits, percent
from steptime.store.atomic import remove_drafts

if TYPE_CHECKING:
    from steptime.core.case import Case
    from steptime.core.record import Attempt

FAILED = 3


def train_command(
    network: Annotated[
        str, typer.Argument(help="A network's name, or FILE.py:NAME.", show_default=False)
    ],
    save: Annotated[
        Path, typer.Option(help="File for the weights, as safetensors.", show_default=False)
    ],
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of the data sets. Default: $STEPTIME_DATA, else ./data."),
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="How often it sees each sample.")] = 3,
    framework: Annotated[
        str, typer.Option(help="Who computes: pytorch, jax, …", show_default=False)
    ] = "",
    mode: Annotated[
        str, typer.Option(help="How: eager, compiled, graph, …", show_default=False)
    ] = "",
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="key=value, any setting; repeatable.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Train a network on its real data set and keep the weights.

    The samples come in the same order in every framework. After each epoch the test part tells how good it is."""
    if data is not None:
        os.environ["STEPTIME_DATA"] = str(data)
    flags = {"workload": network, "framework": framework, "mode": mode}
    case = _case([*(f"{name}={value}" for name, value in flags.items() if value), *(set_ or [])])
    _check_target(save)
    attempt = _train(case, {"epochs": epochs, "save": str(save.absolute())}, quiet=json)
    if attempt.failure is not None:
        if json:
            output.document(_document(attempt))
        output.warn(f"failed: {case.label}: {attempt.failure.cause}. {attempt.failure.reason}")
        raise typer.Exit(FAILED)
    output.document(_document(attempt)) if json else _show(attempt, save)


def _case(words: list[str]) -> Case:
    cases = read_plan("", settings([*words, "phase=training"])).cases
    if len(cases) != 1:
        raise SteptimeError(f"Train one case at a time; these settings give {len(cases)}.")
    return cases[0]


def _check_target(path: Path) -> None:
    """Before an hour of training, not behind it."""
    if path.suffix != ".safetensors":
        raise SteptimeError(
            f"Weights are kept as safetensors: name the file {path}.safetensors, for example."
        )
    if not path.absolute().parent.is_dir() or not os.access(path.absolute().parent, os.W_OK):
        raise SteptimeError(
            f"The folder {path.absolute().parent} of {path.name} is not there or cannot be written."
        )


def _train(case: Case, options: dict[str, Any], *, quiet: bool) -> Attempt:
    from steptime.run.single import train
    from steptime.store.folder import FolderStore

    with Progress() as progress:

        def hear(line: str) -> None:
            told = json_text.loads(line)
            if "test" not in told:
                progress.show(_underway(told))
            elif not quiet:
                progress.show("")
                output.say(_epoch(told))

        progress.show("reading the data …")
        try:
            return train(case, options, FolderStore(store_folder()), hear)
        finally:
            # A worker that was ended while it wrote leaves its draft.
            remove_drafts(Path(options["save"]))


def _underway(told: dict[str, Any]) -> str:
    return f"epoch {told['epoch']} of {told['epochs']}, {percent(told['done'])}: loss {digits(told['loss'])}"


def _epoch(told: dict[str, Any]) -> str:
    speed = f"{digits(told['samples_per_second'])} samples/s"
    place = f"epoch {told['epoch']} of {told['epochs']}"
    return f"{place}: loss {digits(told['loss'])}, test {_metric(told['test'])}, {speed}"


def _metric(test: dict[str, Any]) -> str:
    if test["metric"] == "accuracy":
        return f"accuracy {100 * test['value']:.2f} % ({100 * test['low']:.2f} … {100 * test['high']:.2f} %)"
    return (
        f"{test['metric']} {digits(test['value'])} ({digits(test['low'])} … {digits(test['high'])})"
    )


def _document(attempt: Attempt) -> dict[str, Any]:
    failure = {"failure": vars(attempt.failure)} if attempt.failure else {}
    told = {
        "id": attempt.id,
        "case": attempt.case.to_dict(),
        "network": attempt.network,
        "software": attempt.software,
    }
    return {**told, **attempt.findings, **failure}


def _show(attempt: Attempt, save: Path) -> None:
    told = attempt.findings["training"]
    name, where = attempt.network["name"], told["set"]["title"]
    output.say(
        f"{name} learned {where} in {clock(told['seconds'])}: test {_metric(told['test'])}, 95 % interval."
    )
    use = f"steptime run --workload {attempt.case.workload} --phase inference --set weights={save}"
    output.say(f"Weights in {save}; use them: {use}")
