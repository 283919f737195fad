"""Read everything in a store and report what is there and what is wrong. Changes nothing."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from steptime.core.errors import SteptimeError
from steptime.store import journals, parts
from steptime.store.blobs import Blobs
from steptime.store.folder import FolderStore
from steptime.store.imports import PATTERN as IMPORTS
from steptime.store.imports import foreign_runs
from steptime.store.journals import StoredJournal


@dataclass
class CheckReport:
    # Ended ones, each counted once.
    attempts: int = 0
    # By state.
    journals: Counter[str] = field(default_factory=Counter)
    part_files: Counter[str] = field(default_factory=Counter)
    # The same text in a second file is harmless: one of them is read.
    duplicates: int = 0
    blobs: Counter[str] = field(default_factory=Counter)
    imports: Counter[str] = field(default_factory=Counter)
    # Left by killed writers; no reader opens them.
    drafts: int = 0
    wrong: list[str] = field(default_factory=list)


def check(store: FolderStore) -> CheckReport:
    if not store.path.is_dir():
        raise SteptimeError(f"There is no store {store.path}. Name one with --store.")
    report = CheckReport()
    for state in (journals.ENDED, *journals.OTHER):
        report.journals[state] = 0
    _check_attempts(store, report)
    _check_blobs(store, report)
    _check_imports(store, report)
    report.drafts = sum(1 for _ in store.path.rglob(".*.draft"))
    return report


def _check_attempts(store: FolderStore, report: CheckReport) -> None:
    first_seen: dict[str, tuple[bytes, Path]] = {}
    for journal in chain(_ended_journals(store, report), _part_journals(store, report)):
        digest = hashlib.sha256(journal.text.encode()).digest()
        if journal.id not in first_seen:
            first_seen[journal.id] = digest, journal.path
            continue
        other_digest, other_path = first_seen[journal.id]
        if other_digest == digest:
            report.duplicates += 1
        else:
            report.wrong.append(
                f"{journal.path}: {other_path} has another text for the same id, {journal.id}."
            )
    report.attempts = len(first_seen)


def _ended_journals(store: FolderStore, report: CheckReport) -> Iterator[StoredJournal]:
    for journal in journals.scan(journals.paths(store.path)):
        report.journals[journal.state] += 1
        if journal.problem:
            report.wrong.append(journal.problem)
        if journal.state == journals.ENDED:
            yield journal


def _part_journals(store: FolderStore, report: CheckReport) -> Iterator[StoredJournal]:
    report.part_files.update(files=0, attempts=0, damaged=0)
    for path in store.parts.paths():
        report.part_files["files"] += 1
        try:
            for journal in parts.stored_journals(path, parts.texts(path), report.wrong):
                report.part_files["attempts"] += 1
                yield journal
        except parts.DamagedPart as problem:
            report.part_files["damaged"] += 1
            report.wrong.append(str(problem))


def _check_blobs(store: FolderStore, report: CheckReport) -> None:
    blobs = Blobs(store.path)
    names = list(blobs.names())
    damaged = blobs.check()
    size = sum(blobs.path(name).stat().st_size for name in names)
    report.blobs.update(files=len(names), bytes=size, damaged=len(damaged))
    report.wrong += damaged


def _check_imports(store: FolderStore, report: CheckReport) -> None:
    problems: list[str] = []
    rows = sum(1 for _ in foreign_runs(store.path, problems))
    files = sorted(store.path.glob(IMPORTS))
    blobs = Blobs(store.path)
    for file in files:
        # Only the original proves the rows that were read from it.
        if not blobs.path(file.stem).is_file():
            problems.append(f"{file}: its original is missing; import the original again.")
    report.imports.update(files=len(files), rows=rows, damaged=len(problems))
    report.wrong += problems
