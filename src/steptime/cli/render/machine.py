"""A machine as text: hardware, software, health, launch commands and peaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from steptime.cli import output
from steptime.cli.render.table import Column, print_table, quantity
from steptime.core.format import byte_count, digits, with_prefix

PEAK_COLUMNS = (
    Column("device"),
    Column("peak", stays=True),
    quantity("best"),
    quantity("median", drop=1),
    Column("shape", drop=2),
    Column("bursts", right=True, drop=3),
)
# The names before the facts, with their indentation.
MARGIN = 31

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
        print_table(PEAK_COLUMNS, rows)
        output.echo(f"Stored in {facts['stored']}.")
    for device, refused in facts.get("refused", {}).items():
        output.echo(_refusal(device, refused))


def _show_section(title: str, facts: dict[str, Any]) -> None:
    output.echo(f"{title}:")
    for label, text in labelled_lines(facts):
        output.echo_labelled(f"  {label}", text, MARGIN)
    output.echo()


def _show_machine_file(machine_file: dict[str, Any]) -> None:
    output.echo(f"machine file {machine_file['path']}:")
    for name, launch in machine_file["frameworks"].items():
        output.echo_labelled(f"  {name}", f"is started {_launch_text(launch)}", MARGIN)
    for name, launch in machine_file["launches"].items():
        label = f"launch {name}"
        output.echo_labelled(f"  {label}", f"is started {_launch_text(launch)}", MARGIN)
    for name, folder in machine_file["tiers"].items():
        label = f"tier {name}"
        output.echo_labelled(f"  {label}", f"is the folder {folder}", MARGIN)
    for name in machine_file["slurm"]:
        label = f"slurm {name}"
        output.echo_labelled(f"  {label}", "is a kind of node for `steptime submit`", MARGIN)
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
