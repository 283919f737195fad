"""`steptime machine`: the hardware, its state at the moment, and its measured peaks."""

from __future__ import annotations

import json as json_text
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steptime.cli import exit_codes, output
from steptime.cli.options import Json
from steptime.cli.render.watch import Progress
from steptime.cli.request import store_folder
from steptime.core.errors import SteptimeError
from steptime.core.format import rough_duration
from steptime.core.secrets import redact_environment

if TYPE_CHECKING:
    from subprocess import Popen


def machine_command(
    no_peaks: Annotated[
        bool, typer.Option("--no-peaks", help="Describe the machine; measure nothing.")
    ] = False,
    trust: Annotated[
        bool, typer.Option("--trust", help="Trust ./machine.toml as it is now; measure nothing.")
    ] = False,
    json: Json = False,
) -> None:
    """Describe this machine and measure its peaks.

    Peaks are the fastest matrix products per data type and the fastest copy. They are stored, so
    that results can be held against them. Peaks of a busy device are not stored."""
    from steptime.cli.render.machine import show
    from steptime.run import local
    from steptime.store.folder import FolderStore
    from steptime.store.machines import read_peaks, write_machine

    if trust:
        local.trust_machine_file()
        output.note("Trusted: ./machine.toml, until it is changed.")
        no_peaks = True
    # First, so that a mistake is reported before anything is measured.
    machine_file = local.machine_file()
    FolderStore(store_folder()).check_exists()
    with Progress() as progress:
        progress.show("reading the hardware …")
        facts = _inspect(progress, ["--no-peaks"] if no_peaks else [])
    fingerprint = facts["machine"].get("fingerprint")
    for device, peaks in read_peaks(store_folder(), fingerprint).items():
        if device in facts["refused"]:
            facts["refused"][device]["older"] = peaks.get("measured") or "an earlier day"
    if facts["peaks"]:
        # Only measured peaks are stored; the description is in every record.
        facts["stored"] = str(write_machine(store_folder(), facts))
    if machine_file.path:
        facts["machine_file"] = redact_environment(machine_file.to_dict())
    if json:
        output.print_json(facts)
    else:
        show(facts)
    if facts["refused"]:
        raise typer.Exit(exit_codes.ERROR)


def _inspect(progress: Progress, flags: list[str]) -> dict[str, Any]:
    """Run `steptime.machine.peaks`, in a process of its own because it imports frameworks."""
    from subprocess import PIPE, Popen
    from tempfile import TemporaryFile

    facts: dict[str, Any] = {"machine": {}, "software": {}, "peaks": {}, "refused": {}}
    command = [sys.executable, "-P", "-m", "steptime.machine.peaks", *flags]
    # A pipe could fill up while only stdout is read.
    with TemporaryFile("w+") as errors:
        with Popen(command, stdout=PIPE, stderr=errors, text=True) as process:
            _read_facts(process, facts, progress)
        errors.seek(0)
        error_lines = errors.read().strip().splitlines()
    if process.returncode:
        reason = error_lines[-1] if error_lines else "no reason given"
        raise SteptimeError(f"The machine could not be inspected: {reason}.")
    return facts


def _read_facts(process: Popen[str], facts: dict[str, Any], progress: Progress) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        message = json_text.loads(line)
        topic = message.pop("part")
        if topic == "starts":
            limit = rough_duration(message["seconds"])
            progress.show(f"measuring the peaks of {message['device']}, up to {limit} …")
        elif topic in ("peaks", "refused"):
            facts[topic][message.pop("device")] = message
        else:
            facts[topic] = message
