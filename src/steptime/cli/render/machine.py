"""A machine as text: hardware, software, health, launch commands and peaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from steptime.cli import output
from steptime.core.format import byte_count, digits, with_prefix

# Shown elsewhere.
REPEATED = ("memory_gib", "clock_source", "python")
UNITS: dict[str, Callable[[Any], str]] = {
    "bytes": byte_count,
    "share": lambda value: f"{100 * value:.1f} %",
    "mhz": lambda value: f"{digits(value)} MHz",
    "w": lambda value: f"{digits(value)} W",
}


def show(facts: dict[str, Any]) -> None:
    machine = {name: value for name, value in facts["machine"].items() if name not in REPEATED}
    health = machine.pop("health", {})
    _show_section("machine", machine)
    _show_section("software", facts["software"])
    _show_section("health", health)
    if "machine_file" in facts:
        _show_machine_file(facts["machine_file"])
    rows: list[list[str]] = []
    for device, measured in facts["peaks"].items():
        rows += _peak_rows(device, measured["peaks"])
    if rows:
        output.echo("peaks: the best burst, and the median at the same shape")
        heads = ["device", "peak", "best", "median", "shape", "bursts"]
        output.print_table(heads, rows, right=["best", "median", "bursts"])
        output.echo(f"Stored in {facts['stored']}.")
    for device, refused in facts.get("refused", {}).items():
        output.echo(_refusal(device, refused))


def _show_section(title: str, facts: dict[str, Any]) -> None:
    output.echo(f"{title}:")
    for label, text in labelled_lines(facts):
        output.echo(f"  {label:<28} {text}")
    output.echo()


def _show_machine_file(machine_file: dict[str, Any]) -> None:
    output.echo(f"machine file {machine_file['path']}:")
    for name, launch in machine_file["frameworks"].items():
        output.echo(f"  {name:<28} is started {_launch_text(launch)}")
    for name, launch in machine_file["launches"].items():
        label = f"launch {name}"
        output.echo(f"  {label:<28} is started {_launch_text(launch)}")
    for name, folder in machine_file["tiers"].items():
        label = f"tier {name}"
        output.echo(f"  {label:<28} is the folder {folder}")
    for name in machine_file["slurm"]:
        label = f"slurm {name}"
        output.echo(f"  {label:<28} is a kind of node for `steptime submit`")
    if not any(machine_file[name] for name in ("frameworks", "launches", "tiers", "slurm")):
        output.echo("  It is empty.")
    output.echo()


def _launch_text(launch: list[str] | dict[str, Any]) -> str:
    if isinstance(launch, dict):
        return f"in {launch['image']} by {launch['kind']}"
    return f"with {' '.join(launch)}"


def _refusal(device: str, refused: dict[str, Any]) -> str:
    older = "None are stored."
    if "older" in refused:
        older = f"Those of {refused['older']} stay."
    return (
        f"No peaks of {device}: in {refused['tries']} tries, {refused['reason']}. {older} "
        "Stop what else runs here, then run steptime machine again."
    )


def _peak_rows(device: str, peaks: dict[str, Any]) -> Iterator[list[str]]:
    for name, peak in peaks.items():
        quantity, unit = "flops", "FLOP/s"
        if "bytes_per_second" in peak:
            quantity, unit = "bytes", "B/s"
        best = with_prefix(peak[f"{quantity}_per_second"], unit)
        median = with_prefix(peak[f"median_{quantity}_per_second"], unit)
        shape = " × ".join(map(str, peak["shape"]))
        yield [device, name.replace("_", " "), best, median, shape, str(peak["n"])]


def labelled_lines(
    facts: dict[str, Any], prefix: str = "", unit: str = ""
) -> Iterator[tuple[str, str]]:
    """Nested facts as pairs of label and text.

    A unit at the end of a name, such as `_bytes`, becomes the unit of its numbers."""
    for name, value in facts.items():
        stem, _, suffix = name.rpartition("_")
        value_unit = suffix if suffix in UNITS else unit
        label = stem if suffix in UNITS else name
        label = f"{prefix} {label}".strip().replace("_", " ")
        if isinstance(value, dict):
            yield from labelled_lines(value, label, value_unit)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for number, inner in enumerate(value):
                yield from labelled_lines(inner, f"{label} {number}")
        elif value is not None:
            yield label, _text(value, value_unit)


def _text(value: Any, unit: str) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if unit and isinstance(value, int | float):
        return UNITS[unit](value)
    return digits(value) if isinstance(value, float) else str(value)
