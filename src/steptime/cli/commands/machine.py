"""`steptime machine`: what this machine is, how it is at the moment, and the best it was measured to do."""

from __future__ import annotations

import json as json_text
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steptime.cli import output
from steptime.cli.render.format import clock, scaled
from steptime.cli.render.watch import Progress
from steptime.cli.request import store_folder
from steptime.core.errors import SteptimeError
from steptime.core.format import byte_count, digits
from steptime.store.machines import write_machine

if TYPE_CHECKING:
    from subprocess import Popen

REPEATED = ("memory_gib", "clock_source", "python")  # said elsewhere


def machine_command(
    no_peaks: Annotated[
        bool, typer.Option("--no-peaks", help="Tell what is here; measure nothing.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Inventory, health and measured peaks.

    Peaks are the best matrix products per data type and the best copy. They are kept in the store, so that results
    can be set against them."""
    from steptime.run import local

    told = local.machine_file()  # a wrong one is told before anything is asked
    with Progress() as progress:
        progress.show("asking the machine …")
        found = _ask(progress, ["--no-peaks"] if no_peaks else [])
    if found["peaks"]:
        found["stored"] = str(write_machine(store_folder(), found))
    if told.path:
        found["machine_file"] = told.to_dict()
    if json:
        output.document(found)
    else:
        _show(found)


def _ask(progress: Progress, flags: list[str]) -> dict[str, Any]:
    """The answers of `steptime.machine.peaks`, which runs in its own process because it imports frameworks."""
    from subprocess import PIPE, Popen
    from tempfile import TemporaryFile

    found: dict[str, Any] = {"machine": {}, "software": {}, "peaks": {}}
    command = [sys.executable, "-P", "-m", "steptime.machine.peaks", *flags]
    with TemporaryFile("w+") as errors:
        with Popen(command, stdout=PIPE, stderr=errors, text=True) as process:
            _listen(process, found, progress)
        errors.seek(0)
        complaints = errors.read().strip().splitlines()
    if process.returncode:
        raise SteptimeError(
            f"The machine could not be asked: {complaints[-1] if complaints else 'no reason given'}."
        )
    return found


def _listen(process: Popen[str], found: dict[str, Any], progress: Progress) -> None:
    for line in process.stdout or ():
        answer = json_text.loads(line)
        part = answer.pop("part")
        if part == "starts":
            progress.show(
                f"measuring the peaks of {answer['device']}, up to {clock(answer['seconds'])} …"
            )
        elif part == "peaks":
            found["peaks"][answer.pop("device")] = answer
        else:
            found[part] = answer


def _show(found: dict[str, Any]) -> None:
    machine = {name: value for name, value in found["machine"].items() if name not in REPEATED}
    health = machine.pop("health", {})
    for name, part in (("machine", machine), ("software", found["software"]), ("health", health)):
        output.say(f"{name}:")
        for label, text in lines(part):
            output.say(f"  {label:<28} {text}")
        output.say()
    if told := found.get("machine_file"):
        output.say(f"machine file {told['path']}:")
        for name, way in {
            **told["frameworks"],
            **{f"launch {n}": w for n, w in told["launches"].items()},
        }.items():
            output.say(f"  {name:<28} is started {_started(way)}")
        output.say()
    rows = [row for device, part in found["peaks"].items() for row in _peak_rows(device, part)]
    if rows:
        output.say("peaks: the best of all bursts, beside the median at the same shape")
        output.table(
            ["device", "peak", "best", "median", "shape", "bursts"],
            rows,
            right=["best", "median", "bursts"],
        )
        output.say(f"Kept in {found['stored']}.")


def _started(way: list[str] | dict[str, Any]) -> str:
    if isinstance(way, dict):
        return f"in {way['image']} by {way['kind']}"
    return f"with {' '.join(way)}"


def _peak_rows(device: str, part: dict[str, Any]) -> Iterator[list[str]]:
    for name, peak in part["peaks"].items():
        kind, unit = ("bytes", "B/s") if "bytes_per_second" in peak else ("flops", "FLOP/s")
        best, median = (scaled(peak[f"{word}{kind}_per_second"], unit) for word in ("", "median_"))
        yield [
            device,
            name.replace("_", " "),
            best,
            median,
            " × ".join(map(str, peak["shape"])),
            str(peak["n"]),
        ]


UNITS: dict[str, Callable[[Any], str]] = {
    "bytes": byte_count,
    "share": lambda value: f"{100 * value:.1f} %",
    "mhz": lambda value: f"{digits(value)} MHz",
    "w": lambda value: f"{digits(value)} W",
}


def lines(values: dict[str, Any], above: str = "", unit: str = "") -> Iterator[tuple[str, str]]:
    """Whatever is nested, as pairs of words: the unit at the end of a name becomes the unit of its numbers."""
    for name, value in values.items():
        words, _, last = name.rpartition("_")
        own, label = (last, words) if last in UNITS else (unit, name)
        label = f"{above} {label}".strip().replace("_", " ")
        if isinstance(value, dict):
            yield from lines(value, label, own)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for number, inner in enumerate(value):
                yield from lines(inner, f"{label} {number}")
        elif value is not None:
            yield label, _text(value, own)


def _text(value: Any, unit: str) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if unit and isinstance(value, int | float):
        return UNITS[unit](value)
    return digits(value) if isinstance(value, float) else str(value)
