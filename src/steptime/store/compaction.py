"""Move ended journals into parts.

Killed at any moment it loses nothing: the id is the identity of an attempt, and a journal is
removed only after a part on the disk holds its text."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from steptime.core.errors import SteptimeError
from steptime.store import journals, parts
from steptime.store.atomic import explain_write_errors
from steptime.store.folder import FolderStore
from steptime.store.journals import StoredJournal

# Of the journals in one part: all of them are in memory while it is written.
MOST_CHARACTERS = 100_000_000
DEAD_DRAFT_SECONDS = 3600.0
# A parent reads its worker's journal at once and then removes the orders.
ORDERS_SECONDS = 86_400.0


@dataclass
class CompactionReport:
    moved: int = 0
    # Journals whose text a part held already: an earlier compactor was killed.
    finished: int = 0
    part_files: list[str] = field(default_factory=list)
    # Journals that stay, by the reason.
    left: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def compact(store: FolderStore) -> CompactionReport:
    report = CompactionReport()
    if not store.path.is_dir():
        raise SteptimeError(f"There is no store {store.path}. Name one with --store.")
    advice = "The journals are kept; make room and compact again."
    with (
        store.hold("compact", "Journals are being compacted in"),
        explain_write_errors(f"A part of {store.path}", advice),
    ):
        _drop_drafts(store.parts.folder)
        part_of = _parts_by_id(store, report.problems)
        for batch in _batches(store, report):
            new = _drop_duplicates(batch, part_of, report)
            if new:
                _move(store, new, part_of, report)
    return report


def _batches(store: FolderStore, report: CompactionReport) -> Iterator[list[StoredJournal]]:
    """Journals to move; each batch is of one day."""
    for day in sorted(store.path.glob("journal/*/*/*")):
        yield from journals.batches(_movable(day, report), MOST_CHARACTERS)


def _drop_drafts(folder: Path) -> None:
    """Remove what killed compactors left half-written.

    Without working locks another compactor may be alive, so young drafts stay."""
    for draft in folder.glob(".*.draft"):
        if time.time() - draft.stat().st_mtime > DEAD_DRAFT_SECONDS:
            draft.unlink(missing_ok=True)


def _parts_by_id(store: FolderStore, problems: list[str]) -> dict[str, Path]:
    part_of: dict[str, Path] = {}
    for path in store.parts.paths():
        try:
            part_of.update(dict.fromkeys(parts.ids(path), path))
        except parts.DamagedPart as problem:
            problems.append(str(problem))
    return part_of


def _movable(day: Path, report: CompactionReport) -> Iterator[StoredJournal]:
    for journal in journals.scan(sorted(day.glob("*.jsonl"))):
        state = journal.state
        if state == journals.ENDED and _is_awaited(journal.path):
            state = "awaited"
        if state == journals.ENDED:
            yield journal
            continue
        report.left[state] += 1
        if journal.problem:
            report.problems.append(journal.problem)


def _is_awaited(path: Path) -> bool:
    """Whether the worker is gone but its parent has not read the journal yet.

    A parent that died does not count for ever."""
    orders = path.with_suffix(".case.json")
    return orders.exists() and time.time() - path.stat().st_mtime < ORDERS_SECONDS


def _drop_duplicates(
    batch: list[StoredJournal], part_of: dict[str, Path], report: CompactionReport
) -> list[StoredJournal]:
    """Return the journals that no part holds yet; remove those whose exact text one holds."""
    texts = _texts_in_parts(batch, part_of, report.problems)
    new = []
    for journal in batch:
        if journal.id not in texts:
            new.append(journal)
        elif texts[journal.id] == journal.text:
            journal.path.unlink(missing_ok=True)
            report.finished += 1
        else:
            part_file = part_of[journal.id]
            report.problems.append(
                f"{journal.path}: {part_file} has another text for this id; both are kept."
            )
    return new


def _texts_in_parts(
    batch: list[StoredJournal], part_of: dict[str, Path], problems: list[str]
) -> dict[str, str]:
    """What the parts hold for these ids. A damaged part is not relied on."""
    ids_by_part: dict[Path, list[str]] = {}
    for journal in batch:
        if journal.id in part_of:
            ids_by_part.setdefault(part_of[journal.id], []).append(journal.id)
    texts: dict[str, str] = {}
    for path, ids in ids_by_part.items():
        try:
            texts.update(parts.texts(path, only=ids))
        except parts.DamagedPart as problem:
            problems.append(str(problem))
    return texts


def _move(
    store: FolderStore,
    batch: list[StoredJournal],
    part_of: dict[str, Path],
    report: CompactionReport,
) -> None:
    """Write one part of these journals, all of one day. The first journal of an id counts."""
    firsts: dict[str, StoredJournal] = {}
    for journal in batch:
        firsts.setdefault(journal.id, journal)
    day = "-".join(batch[0].path.parts[-4:-1])
    written = _write_parts(store, day, list(firsts.values()), report)
    part_of.update(written)
    for journal in batch:
        if journal.id not in written:
            report.left["not_movable"] += 1
        elif firsts[journal.id].text == journal.text:
            journal.path.unlink(missing_ok=True)
            report.moved += 1
        else:
            report.problems.append(
                f"{journal.path}: another journal has this id and another text; both are kept."
            )


def _write_parts(
    store: FolderStore, day: str, batch: list[StoredJournal], report: CompactionReport
) -> dict[str, Path]:
    """The part of each journal, by id. A journal that no part can hold must not block others:
    halves are tried until it is alone."""
    try:
        path = parts.write(store.parts.folder, day, batch)
    except parts.DamagedPart as problem:
        if len(batch) == 1:
            report.problems.append(f"{batch[0].path}: not moved, it stays a journal: {problem}")
            return {}
        middle = len(batch) // 2
        first = _write_parts(store, day, batch[:middle], report)
        return first | _write_parts(store, day, batch[middle:], report)
    report.part_files.append(path.name)
    return {journal.id: path for journal in batch}
