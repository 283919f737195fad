"""Data sets as a table, and a bar while one is downloaded."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steptime.cli import output
from steptime.cli.data_info import MISSING, UNUSABLE
from steptime.cli.render.entries import show_entries

if TYPE_CHECKING:
    from steptime.data.fetch import ProgressBar


def show_data_sets(folder: Path, entries: list[dict[str, Any]]) -> None:
    output.echo(f"Data sets are looked for in {folder} and its subfolders.")
    rows = []
    for entry in entries:
        row = {name: entry[name] for name in ("name", "title", "state")}
        # Below the folder that the line above names.
        row["where"] = entry["where"].removeprefix(str(folder)).lstrip("/")
        row["networks"] = ", ".join(entry["networks"])
        rows.append(row)
    show_entries(rows)
    missing = [entry["name"] for entry in entries if entry["state"] == MISSING]
    if missing:
        output.echo(f"Fetch what is missing: `steptime data fetch {' '.join(missing)}`.")
    for entry in entries:
        if entry["state"] == UNUSABLE:
            output.echo(f"  {entry['problem']}")


def download_bar(file: str) -> ProgressBar | None:
    return DownloadBar(file) if sys.stderr.isatty() else None


class DownloadBar:
    """A bar on the terminal, which is gone when the file is complete."""

    def __init__(self, file: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(binary_units=True))
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._progress.add_task(file, total=None)
        self.total = 0
        self._progress.start()

    def update(self, size: int) -> None:
        # A server need not say how long the file is.
        self._progress.update(self._task, advance=size, total=self.total or None)

    def reset(self) -> None:
        self._progress.reset(self._task)

    def close(self) -> None:
        self._progress.stop()
