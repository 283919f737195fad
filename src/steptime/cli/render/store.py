"""What `steptime store …` prints."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from steptime.cli import output
from steptime.cli.render.format import plural

if TYPE_CHECKING:
    from steptime.store.check import CheckReport
    from steptime.store.compaction import CompactionReport
    from steptime.store.convert import ConversionReport
    from steptime.store.merge import MergeReport
    from steptime.store.push import PushReport


def show_check(path: Path, report: CheckReport) -> None:
    output.echo(f"{report.attempts:,} attempts in {path}.")
    counters = {
        "journals": report.journals,
        "Parquet": report.part_files,
        "blobs": report.blobs,
        "imports": report.imports,
    }
    for name, counts in counters.items():
        output.echo(f"{name:<10}{_counts(counts) or 'none'}")
    if report.duplicates:
        output.echo(f"{report.duplicates:,} are in two files; one of them is read.")
    if report.without_checksums:
        attempts = plural(report.without_checksums, "attempt")
        output.echo(f"{attempts} of older versions without checksums: damage may go unnoticed.")
    if report.drafts:
        output.echo(f"{plural(report.drafts, 'draft')} of killed processes; nothing reads them.")
    for sentence in report.wrong:
        output.echo(f"wrong: {sentence}")
    if not report.wrong:
        output.echo("Nothing is wrong.")


def show_compaction(path: Path, summary: CompactionReport) -> None:
    journals = plural(summary.moved, "journal")
    files = plural(len(summary.part_files), "Parquet file")
    output.echo(f"{journals} moved into {files} of {path}.")
    if summary.finished:
        count = plural(summary.finished, "journal")
        output.echo(f"{count} removed because a Parquet file has it already.")
    _show_left(summary.left)


def show_push(database: str, summary: PushReport) -> None:
    attempts = plural(summary.runs, "attempt")
    rows = plural(summary.foreign_runs, "imported row")
    machines = plural(summary.machines, "machine")
    blobs = plural(summary.blobs, "blob")
    output.echo(
        f"{attempts} and {rows}, {machines} and {blobs} sent to {database}; "
        f"{summary.present:,} attempts and rows were there already."
    )
    _show_left(summary.left)


def show_merge(path: Path, summary: MergeReport) -> None:
    output.echo(f"Copied into {path}: {_counts(summary.copied) or 'nothing'}.")
    output.echo(f"Already there: {_counts(summary.present) or 'nothing'}.")
    _show_left(summary.left)


def show_conversion(path: Path, summary: ConversionReport) -> None:
    output.echo(f"Converted into {path}: {_counts(summary.converted) or 'nothing'}.")
    output.echo(f"Already there: {_counts(summary.present) or 'nothing'}.")
    _show_left(summary.left)


def _show_left(left: Counter[str]) -> None:
    if left:
        output.echo(f"Left as they are: {_counts(left)}.")


def _counts(counts: Counter[str]) -> str:
    """`files 3, rows 12`, without zeros."""
    texts = []
    for name, count in counts.items():
        if count:
            texts.append(f"{name.replace('_', ' ')} {count:,}")
    return ", ".join(texts)
