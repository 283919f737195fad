"""Reads everything in a store and tells what is there and what is wrong. Changes nothing."""

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
from steptime.store.imports import foreign_runs
from steptime.store.journals import StoredJournal


@dataclass
class Report:
    attempts: int = 0  # ended ones, each counted once
    journals: Counter[str] = field(default_factory=Counter)  # by state
    parts: Counter[str] = field(default_factory=Counter)
    duplicates: int = 0  # the same text once more: harmless, one is read
    blobs: Counter[str] = field(default_factory=Counter)
    imports: Counter[str] = field(default_factory=Counter)
    drafts: int = 0  # what killed writers left: nobody reads them
    wrong: list[str] = field(default_factory=list)


def check(store: FolderStore) -> Report:
    if not store.path.is_dir():
        raise SteptimeError(f"There is no store {store.path}. Name one with --store.")
    report = Report(journals=Counter(dict.fromkeys((journals.ENDED, *journals.OTHER), 0)))
    _attempts(store, report)
    _blobs(store, report)
    _imports(store, report)
    report.drafts = sum(1 for _ in store.path.rglob(".*.draft"))
    return report


def _attempts(store: FolderStore, report: Report) -> None:
    seen: dict[str, tuple[bytes, Path]] = {}
    for found in chain(_journals(store, report), _parts(store, report)):
        digest = hashlib.sha256(found.text.encode()).digest()
        if found.id not in seen:
            seen[found.id] = digest, found.path
        elif seen[found.id][0] == digest:
            report.duplicates += 1
        else:
            report.wrong.append(
                f"{found.path}: {seen[found.id][1]} says something else of the same id, {found.id}."
            )
    report.attempts = len(seen)


def _journals(store: FolderStore, report: Report) -> Iterator[StoredJournal]:
    for found in journals.scan(journals.paths(store.path)):
        report.journals[found.state] += 1
        if found.problem:
            report.wrong.append(found.problem)
        if found.state == journals.ENDED:
            yield found


def _parts(store: FolderStore, report: Report) -> Iterator[StoredJournal]:
    report.parts.update(files=0, attempts=0, damaged=0)
    for path in store.parts.paths():
        report.parts["files"] += 1
        try:
            for found in parts.stored_journals(path, parts.texts(path), report.wrong):
                report.parts["attempts"] += 1
                yield found
        except parts.DamagedPart as problem:
            report.parts["damaged"] += 1
            report.wrong.append(str(problem))


def _blobs(store: FolderStore, report: Report) -> None:
    blobs = Blobs(store.path)
    names = list(blobs.names())
    damaged = blobs.check()
    size = sum(blobs.path(name).stat().st_size for name in names)
    report.blobs.update(files=len(names), bytes=size, damaged=len(damaged))
    report.wrong += damaged


def _imports(store: FolderStore, report: Report) -> None:
    """Rows can be proved only by their original."""
    problems: list[str] = []
    files = sorted((store.path / "imports").glob("*.jsonl"))
    rows = sum(1 for _ in foreign_runs(store.path, problems))
    lost = [file for file in files if not Blobs(store.path).path(file.stem).is_file()]
    problems += [f"{file}: its original is missing; import the original again." for file in lost]
    report.imports.update(files=len(files), rows=rows, damaged=len(problems))
    report.wrong += problems
