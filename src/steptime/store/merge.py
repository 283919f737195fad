"""Copy into this store what another folder holds. Nothing here is replaced; the other is read."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from steptime.core.errors import SteptimeError
from steptime.store import imports, journals, machines, parts
from steptime.store.atomic import atomic_write, explain_write_errors
from steptime.store.blobs import MISNAMED, Blobs
from steptime.store.files import read_bytes
from steptime.store.folder import MARK, FolderStore
from steptime.store.journal import is_running
from steptime.store.journals import StoredJournal

# Files whose names tell their content: a name that is here already needs no comparison.
NAMED_BY_CONTENT = (imports.PATTERN, machines.PATTERN)


@dataclass
class MergeReport:
    """Counts by what was counted: journals, parts, blobs, imports, machines."""

    copied: Counter[str] = field(default_factory=Counter)
    # Here before.
    present: Counter[str] = field(default_factory=Counter)
    # Not taken, by the reason.
    left: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def count(self, name: str, *, copied: bool) -> None:
        counts = self.copied if copied else self.present
        counts[name] += 1


def merge(store: FolderStore, other: FolderStore) -> MergeReport:
    if not (other.path / MARK).is_file():
        raise SteptimeError(f"{other.path} is no store: it has no {MARK}.")
    if store.path.resolve() == other.path.resolve():
        raise SteptimeError(f"{other.path} is the store itself. Name another one.")
    store.make()
    report = MergeReport()
    advice = "What was copied is kept; make room and merge again."
    with explain_write_errors(f"The store {store.path}", advice):
        known_ids = set(_ids_in_parts(store, report.problems))
        # Journals before parts, because a compactor moves attempts from there to here.
        _merge_journals(store, other, known_ids, report)
        _merge_parts(store, other, known_ids, report)
        _merge_blobs(Blobs(store.path), Blobs(other.path), report)
        for pattern in NAMED_BY_CONTENT:
            _merge_files(store, other, pattern, report)
    return report


def _ids_in_parts(store: FolderStore, problems: list[str]) -> Iterator[str]:
    for path in store.parts.paths():
        try:
            yield from parts.ids(path)
        except parts.DamagedPart as problem:
            problems.append(str(problem))


def _merge_journals(
    store: FolderStore, other: FolderStore, known_ids: set[str], report: MergeReport
) -> None:
    """A journal without an end is taken, too: it may be all that is left of a machine."""
    for journal in journals.scan(journals.paths(other.path)):
        if journal.state not in (journals.ENDED, journals.WITHOUT_END):
            report.left[journal.state] += 1
            if journal.problem:
                report.problems.append(journal.problem)
            continue
        copied = False
        if journal.id not in known_ids:
            target = store.path / journal.path.relative_to(other.path)
            copied = _copy_journal(journal, target, report)
        report.count("journals", copied=copied)
        known_ids.add(journal.id)


def _copy_journal(journal: StoredJournal, target: Path, report: MergeReport) -> bool:
    """Journals only grow: if one continues the other, the longer one counts."""
    theirs = read_bytes(journal.path)
    ours = b""
    if target.exists():
        ours = read_bytes(target)
        if ours.startswith(theirs) or is_running(target):
            return False
    if not theirs.startswith(ours):
        report.problems.append(
            f"{journal.path}: {target} has another text for the same id; it is not taken."
        )
        return False
    # The log first: a journal that is here needs no second merge.
    log = journal.path.with_suffix(".log")
    if log.exists():
        _copy(log, target.with_name(log.name))
    _copy(journal.path, target)
    return True


def _merge_parts(
    store: FolderStore, other: FolderStore, known_ids: set[str], report: MergeReport
) -> None:
    for path in other.parts.paths():
        target = store.parts.folder / path.name
        try:
            is_new = not parts.is_intact(target) and not parts.ids(path) <= known_ids
            if is_new:
                # Those that are set aside come along, and each is named.
                list(parts.stored_journals(path, parts.texts(path), report.problems))
        except parts.DamagedPart as problem:
            report.problems.append(str(problem))
            continue
        if is_new:
            _copy(path, target)
        report.count("parts", copied=is_new)


def _merge_blobs(ours: Blobs, theirs: Blobs, report: MergeReport) -> None:
    for name in theirs.names():
        is_new = not ours.is_intact(name)
        if is_new and not theirs.is_intact(name):
            report.problems.append(f"{theirs.path(name)}: {MISNAMED}; it is not taken.")
            continue
        if is_new:
            ours.put(theirs.path(name))
        report.count("blobs", copied=is_new)


def _merge_files(store: FolderStore, other: FolderStore, pattern: str, report: MergeReport) -> None:
    for path in sorted(other.path.glob(pattern)):
        target = store.path / path.relative_to(other.path)
        is_new = not target.exists()
        if is_new:
            _copy(path, target)
        report.count(path.parent.name, copied=is_new)


def _copy(source: Path, target: Path) -> None:
    with atomic_write(target) as draft:
        shutil.copyfile(source, draft)
