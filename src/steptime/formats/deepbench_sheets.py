"""DeepBench's spreadsheets of kernel times: every row and pass is a run.

The arithmetic is computed anew from the shapes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from steptime.formats import Original, Row, Rows, Skipped
from steptime.formats._deepbench import (
    PASSES,
    flops,
    format_sizes,
    operator,
    output_size,
    shape,
)
from steptime.formats._parse import clean_text, number, ratio, scale
from steptime.formats._xlsx import SheetRows, glimpse, is_sheet, sheets

TITLE = "DeepBench spreadsheets"
# Names of the device in the sheet `Specs`, the most specific first.
SPECS = ("GPU Model", "CPU Model", "CPU")


def recognises(name: str, head: bytes) -> bool:
    if not is_sheet(head):
        return False
    if b"Dense Matrix Multiplication" in glimpse(head):
        return True
    return "deepbench" in name.rpartition("/")[2].lower()


@dataclass(frozen=True)
class Section:
    """A title, the names of its columns, and what its sheet and book say about all rows."""

    operator: str
    columns: tuple[str, ...]
    # The text that names it, in the sheet and in its name.
    precision: str
    device: str
    phase: str


class Kernel(NamedTuple):
    section: Section
    values: dict[str, str]
    sizes: dict[str, float]


def read(file: Original) -> Rows:
    book = list(sheets(file.content))
    device = clean_text(_device(book) or file.folders.stem)
    phase = "inference" if "inference" in file.folders.parts else "training"
    for name, rows in book:
        if name == "Specs":
            continue
        precision = f"{_stated_precision(rows)} {name}".lower()
        empty = Section("", (), precision, device, phase)
        for section, number_of_row, cells in _data_rows(empty, rows):
            yield from _read_row(file, f"{name}, row {number_of_row}", section, cells)
    if not book:
        yield Skipped("file", "not a workbook that can be opened")


def _device(book: list[tuple[str, SheetRows]]) -> str:
    """From the sheet `Specs`; empty if there is none."""
    specs = {}
    for name, rows in book:
        if name == "Specs":
            specs.update({cells[0].strip(): cells[1] for _, cells in rows if len(cells) > 1})
    return next((specs[key] for key in SPECS if specs.get(key)), "")


def _stated_precision(rows: SheetRows) -> str:
    for _, cells in rows[:2]:
        if len(cells) > 1 and cells[0] == "Precision":
            return cells[1]
    return ""


def _data_rows(empty: Section, rows: SheetRows) -> Iterator[tuple[Section, int, list[str]]]:
    """A title is in the first column, in the row of the columns' names or one row above."""
    op = ""
    # None until the first header; titles and notes come before it.
    section = None
    for number_of_row, cells in rows:
        op = operator(cells[0]) or op
        if op and _is_header(cells):
            names = tuple(cell.strip() for cell in cells)
            section = replace(empty, operator=op, columns=names)
        elif section and len(cells) > 3 and _are_numbers(cells[2:4]):
            yield section, number_of_row, cells


def _is_header(cells: list[str]) -> bool:
    names = [cell for cell in cells[2:] if cell.strip() and number(cell) is None]
    return len(names) >= 3 and number(cells[2]) is None


def _are_numbers(cells: list[str]) -> bool:
    return all(number(cell) is not None for cell in cells)


def _read_row(file: Original, location: str, section: Section, cells: list[str]) -> Rows:
    values = {name: cell for name, cell in zip(section.columns, cells, strict=False) if name}
    sizes = shape(section.operator, values)
    if sizes is None:
        yield Skipped(location, "sizes that cannot be read")
        return
    kernel = Kernel(section, values, sizes)
    passes = []
    for column, value in values.items():
        passes += [(PASSES[start], value) for start in PASSES if column.startswith(start)]
    if not any(clean_text(time) for _, time in passes):
        yield Skipped(location, "no time: the kernel was not run")
    for name, time in passes:
        if clean_text(time) and not time.startswith("N/A"):
            full_location = f"{location}, {name}" if len(passes) > 1 else location
            yield _read_pass(file, full_location, kernel, name, time)


def _read_pass(file: Original, location: str, kernel: Kernel, name: str, time: str) -> Row:
    section, values, sizes = kernel
    seconds = scale(time, 1e-3)
    ranks = sizes.get("ranks")
    transposed = f"{values.get('A Transpose', '')}{values.get('B Transpose', '')}"
    printed_teraflops = values.get("TERAFLOPS") or values.get("FWD TERAFLOPS")
    return file.run(
        location,
        {
            "operator": section.operator,
            "shape": f"{format_sizes(sizes)} {transposed}".strip(),
            "mode": name,
            "precision": _precision(section),
            "devices": int(ranks or 1),
            "suite": "DeepBench",
            "device": section.device,
            "phase": section.phase,
        },
        {
            "step_time": seconds,
            "flops": ratio(flops(section.operator, sizes), seconds),
            "bandwidth": 4 * sizes["floats"] / seconds if ranks and seconds else None,
        },
        failure="" if seconds is not None else clean_text(time),
        more={
            "algorithm": values.get("Forward Algorithm") or values.get("Selected Algorithm"),
            "application": values.get("Source"),
            "padded": values.get("Padded Kernels"),
            "output": output_size(sizes),
            "printed_flops": scale(printed_teraflops, 1e12),
        },
        defects=_output_defects(values),
    )


def _output_defects(values: dict[str, str]) -> tuple[str, ...]:
    fractions = []
    for name in ("P", "Q"):
        value = number(values.get(name))
        if value is not None and value != int(value):
            fractions.append(f"{name}={value:g}")
    if not fractions:
        return ()
    return (f"the sheet's output size is no whole number: {', '.join(fractions)}",)


def _precision(section: Section) -> str:
    text = section.precision
    if "int8" in text:
        return "int8" if section.operator in ("gemm", "convolution") else "fp32"
    return "fp16" if "16 bit" in text or "fp16" in text else "fp32"
