"""The results of all processes as Markdown: one row for each mistake, and totals by class."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.mistakes.mistake import CLASSES

HEADER = (
    "| mistake | framework | network | precision | what is wrong | certificate | item | "
    "tensor | error | bound |"
)
INTRODUCTION = """\
Mistakes put into the lowerings one at a time, and the item of the [certificate](../certificates.md)
that lies farthest beyond its bound. `python -m benchmarks.mistakes` writes this page. A mistake
counts as seen if the certificate of its precision or that in fp64 fails."""
Row = dict[str, Any]


def write_table(out: Path) -> Path:
    rows = read_rows(out)
    lines = ["# Mistakes that certificates see", "", INTRODUCTION, "", *total_lines(rows), ""]
    for number, title in CLASSES.items():
        lines += [f"## {number}. {title}", "", HEADER, "|---|---|---|---|---|---|---|---|--:|--:|"]
        lines += [row_line(row) for row in rows if row["number"] == number]
        lines.append("")
    lines += clean_lines(out)
    path = out / "mistakes.md"
    path.write_text("\n".join(lines) + "\n")
    return path


def read_rows(out: Path) -> list[Row]:
    """The last line of a mistake counts: it may have been tried again."""
    rows = {}
    for path in sorted(out.glob("*.jsonl")):
        if path.name.startswith("clean-"):
            continue
        for line in path.read_text().splitlines():
            row = json.loads(line)
            rows[row["framework"], row["name"]] = row
    return sorted(rows.values(), key=lambda row: (row["number"], row["framework"]))


def total_lines(rows: list[Row]) -> list[str]:
    tried = Counter(row["number"] for row in rows)
    seen = Counter(row["number"] for row in rows if row["certificate"])
    lines = ["| class | mistakes | seen |", "|---|--:|--:|"]
    for number, title in CLASSES.items():
        lines.append(f"| {number}. {title} | {tried[number]} | {seen[number]} |")
    total = len(rows)
    caught = seen.total()
    share = f" ({100 * caught / total:.1f} %)" if total else ""
    lines.append(f"| all | {total} | {caught}{share} |")
    return lines


def row_line(row: Row) -> str:
    network = row["network"].rpartition(":")[2]
    cells = [row["name"], f"{row['framework']} {row['mode']}", network, row["precision"]]
    cells.append(row["description"])
    if row["certificate"]:
        cells += [row["certificate"], row["item"], row["where"]]
        cells += [number_text(row["error"]), number_text(row["bound"])]
    else:
        cells += ["**not seen**", "", "", "", ""]
    return f"| {' | '.join(str(cell).replace('|', '/') for cell in cells)} |"


def number_text(value: float | None) -> str:
    return "∞" if value is None else f"{value:.1e}"


def clean_lines(out: Path) -> list[str]:
    lines = ["## Lowerings as they are", "", "| framework | certificates | false alarms |"]
    lines.append("|---|--:|--:|")
    for path in sorted(out.glob("clean-*.jsonl")):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        alarms = sum(bool(row["alarms"]) for row in rows)
        lines.append(f"| {path.stem.removeprefix('clean-')} | {len(rows)} | {alarms} |")
    return lines
