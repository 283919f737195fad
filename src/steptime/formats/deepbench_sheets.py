"""DeepBench's spreadsheets of kernel times: every row and pass a run, arithmetic counted anew from the shapes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from steptime.formats import Found, Original, Row, Skipped
from steptime.formats._deepbench import PASSES, flops, operator, output_size, shape, spell
from steptime.formats._parse import number, scaled, spelled
from steptime.formats._xlsx import Rows, glimpse, is_sheet, sheets

TITLE = "DeepBench spreadsheets"
SPECS = ("GPU Model", "CPU Model", "CPU")


def recognises(name: str, head: bytes) -> bool:
    if not is_sheet(head):
        return False
    return (
        b"Dense Matrix Multiplication" in glimpse(head)
        or "deepbench" in name.rpartition("/")[2].lower()
    )


@dataclass(frozen=True)
class Section:
    """A title, the names of its columns, and what its sheet and its workbook say of all rows."""

    operator: str
    columns: tuple[str, ...]
    precision: str
    device: str
    phase: str


def read(file: Original) -> Found:
    book = list(sheets(file.content))
    specs = {
        cells[0].strip(): cells[1]
        for name, rows in book
        if name == "Specs"
        for _, cells in rows
        if len(cells) > 1
    }
    device = spelled(next((specs[key] for key in SPECS if specs.get(key)), file.folders.stem))
    phase = "inference" if "inference" in file.folders.parts else "training"
    for name, rows in book:
        if name != "Specs":
            said = next(
                (cells[1] for _, cells in rows[:2] if len(cells) > 1 and cells[0] == "Precision"),
                "",
            )
            empty = Section("", (), f"{said} {name}".lower(), device, phase)
            for section, number_, cells in _lines(empty, rows):
                yield from _runs(file, f"{name}, row {number_}", section, cells)
    if not book:
        yield Skipped("file", "not a workbook that can be opened")


def _lines(empty: Section, rows: Rows) -> Iterator[tuple[Section, int, list[str]]]:
    """Titles stand in the first column, sometimes with the names of the columns and sometimes one row above them."""
    kind, section = "", None
    for number_, cells in rows:
        kind = operator(cells[0]) or kind
        names = tuple(cell.strip() for cell in cells)
        if (
            kind
            and len([name for name in names[2:] if name and number(name) is None]) >= 3
            and number(names[2]) is None
        ):
            section = replace(empty, operator=kind, columns=names)
        elif (
            section
            and len(cells) > 3
            and number(cells[2]) is not None
            and number(cells[3]) is not None
        ):
            yield section, number_, cells


def _runs(file: Original, place: str, section: Section, cells: list[str]) -> Found:
    values = {name: cell for name, cell in zip(section.columns, cells, strict=False) if name}
    sizes = shape(section.operator, values)
    if sizes is None:
        yield Skipped(place, "sizes that cannot be read")
        return
    times = {name: values[name] for name in values if (name.startswith(tuple(PASSES)))}
    passes = [
        (PASSES[key], times[name]) for name in times for key in PASSES if name.startswith(key)
    ]
    if not any(spelled(time) for _, time in passes):
        yield Skipped(place, "no time: the kernel was not run")
    for word, time in passes:
        if spelled(time) and not time.startswith("N/A"):
            yield _run(
                file,
                f"{place}, {word}" if len(passes) > 1 else place,
                section,
                (values, sizes, word, time),
            )


def _run(
    file: Original,
    place: str,
    section: Section,
    told: tuple[dict[str, str], dict[str, float], str, str],
) -> Row:
    values, sizes, word, time = told
    seconds = scaled(time, 1e-3)
    work = flops(section.operator, sizes)
    outputs = {name: number(values.get(name)) for name in ("P", "Q")}
    wrong = [
        f"{name}={value:g}"
        for name, value in outputs.items()
        if value is not None and value != int(value)
    ]
    ranks, transposed = (
        sizes.get("ranks"),
        f"{values.get('A Transpose', '')}{values.get('B Transpose', '')}",
    )
    return file.run(
        place,
        {
            "operator": section.operator, "shape": f"{spell(sizes)} {transposed}".strip(), "mode": word,
            "precision": _precision(section), "devices": int(ranks or 1), "suite": "DeepBench",
            "device": section.device, "phase": section.phase,
        },
        {
            "step_time": seconds,
            "flops": work / seconds if work and seconds else None,
            "bandwidth": 4 * sizes["floats"] / seconds if ranks and seconds else None,
        },
        failure="" if seconds is not None else spelled(time),
        more={
            "algorithm": values.get("Forward Algorithm") or values.get("Selected Algorithm"),
            "application": values.get("Source"), "padded": values.get("Padded Kernels"), "output": output_size(sizes),
            "printed_flops": scaled(values.get("TERAFLOPS") or values.get("FWD TERAFLOPS"), 1e12),
        },
        defects=(f"the sheet's output size is no whole number: {', '.join(wrong)}",) if wrong else (),
    )  # fmt: skip


def _precision(section: Section) -> str:
    text = section.precision
    if "int8" in text:
        return "int8" if section.operator in ("gemm", "convolution") else "fp32"
    return "fp16" if "16 bit" in text or "fp16" in text else "fp32"
