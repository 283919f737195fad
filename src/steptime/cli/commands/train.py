"""`steptime train`: trains a network on its real data set and keeps the weights."""

from __future__ import annotations

import json as json_text
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steptime.cli import exit_codes, output
from steptime.cli.options import DataFolder, Json, Settings
from steptime.cli.render import training as render
from steptime.cli.render.watch import Progress
from steptime.cli.request import collect_settings, read_case, store_folder
from steptime.core.errors import SteptimeError

if TYPE_CHECKING:
    from steptime.core.case import Case
    from steptime.core.record import Attempt


def train_command(
    network: Annotated[
        str, typer.Argument(help="A network's name, or FILE.py:NAME.", show_default=False)
    ],
    save: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="File for the weights, .safetensors.", show_default=False
        ),
    ],
    data: DataFolder = None,
    epochs: Annotated[
        int, typer.Option(min=1, metavar="N", help="Passes over the training set.")
    ] = 3,
    framework: Annotated[
        str, typer.Option(metavar="NAME", help="pytorch, jax, …", show_default=False)
    ] = "",
    mode: Annotated[
        str, typer.Option(metavar="NAME", help="eager, compiled, graph, …", show_default=False)
    ] = "",
    set_: Settings = None,
    json: Json = False,
) -> None:
    """Train a network on real data and save its weights.

    All frameworks see the samples in the same order. After each epoch the test set is evaluated."""
    if data is not None:
        # The worker inherits it.
        os.environ["STEPTIME_DATA"] = str(data)
    flags = {"workload": network, "framework": framework, "mode": mode}
    # Last, so that --set cannot choose another phase.
    settings = collect_settings(set_, flags) | {"phase": "training"}
    case = read_case("Train", settings)
    _check_target(save)
    options = {"epochs": epochs, "save": str(save.absolute())}
    attempt = _train(case, options, quiet=json)
    if json:
        output.print_json(render.to_document(attempt))
    if attempt.failure is not None:
        output.warn(f"failed: {case.label}: {attempt.failure.cause}. {attempt.failure.reason}")
        raise typer.Exit(exit_codes.ALL_FAILED)
    if not json:
        render.show(attempt, save)


def _check_target(path: Path) -> None:
    """Before an hour of training, not after it."""
    if path.suffix != ".safetensors":
        raise SteptimeError(
            f"Weights are saved as safetensors: name the file {path}.safetensors, for example."
        )
    folder = path.absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise SteptimeError(f"The folder {folder} of {path.name} is missing or not writable.")


def _train(case: Case, options: dict[str, Any], *, quiet: bool) -> Attempt:
    from steptime.run.single import train
    from steptime.store.folder import FolderStore

    with Progress() as progress:

        def receive(line: str) -> None:
            facts = json_text.loads(line)
            # A worker reports every few batches, and with `test` after an epoch.
            if "test" not in facts:
                progress.show(render.batch_line(facts))
            elif not quiet:
                progress.show("")
                output.echo(render.epoch_line(facts))

        progress.show("reading the data …")
        try:
            return train(case, options, FolderStore(store_folder()), receive)
        finally:
            # A worker that was killed while it wrote leaves this draft.
            Path(f"{options['save']}.draft").unlink(missing_ok=True)
