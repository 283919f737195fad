"""Moves ended journals into parts. Killed at any moment it loses nothing: the id is the identity, and a journal goes
only when a part on the disk holds its text."""

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

MOST_CHARACTERS = 100_000_000  # of journals in one part: they are all in memory when it is written
DEAD_DRAFT_SECONDS = 3600.0
ORDERS_SECONDS = (
    86_400.0  # a parent reads its worker's journal at once and then takes the orders away
)


@dataclass
class Compaction:
    """What was done, what was left and why."""

    moved: int = 0
    finished: int = 0  # journals whose text a part held already: an earlier compactor was killed
    parts: list[str] = field(default_factory=list)
    left: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def compact(store: FolderStore) -> Compaction:
    done = Compaction()
    if not store.path.is_dir():
        raise SteptimeError(f"There is no store {store.path}. Name one with --store.")
    advice = "The journals are kept; make room and compact again."
    with (
        store.hold("compact", "Journals are being compacted in"),
        explain_write_errors(f"A part of {store.path}", advice),
    ):
        _drop_drafts(store.parts.folder)
        known = _known(store, done.problems)
        for batch in _batches(store, done):
            if new := _unknown(batch, known, done):
                _move(store, new, known, done)
    return done


def _batches(store: FolderStore, done: Compaction) -> Iterator[list[StoredJournal]]:
    """Each of one day."""
    for day in sorted(store.path.glob("journal/*/*/*")):
        yield from journals.batches(_movable(day, done), MOST_CHARACTERS)


def _drop_drafts(folder: Path) -> None:
    """What killed compactors left half-written. One may live where locks do not work: young ones stay."""
    for draft in folder.glob(".*.draft"):
        if time.time() - draft.stat().st_mtime > DEAD_DRAFT_SECONDS:
            draft.unlink(missing_ok=True)


def _known(store: FolderStore, problems: list[str]) -> dict[str, Path]:
    """In which part an id is."""
    known: dict[str, Path] = {}
    for path in store.parts.paths():
        try:
            known |= dict.fromkeys(parts.ids(path), path)
        except parts.DamagedPart as problem:
            problems.append(str(problem))
    return known


def _movable(day: Path, done: Compaction) -> Iterator[StoredJournal]:
    for found in journals.scan(sorted(day.glob("*.jsonl"))):
        state = (
            "awaited" if found.state == journals.ENDED and _is_awaited(found.path) else found.state
        )
        if state == journals.ENDED:
            yield found
            continue
        done.left[state] += 1
        if found.problem:
            done.problems.append(found.problem)


def _is_awaited(path: Path) -> bool:
    """Its worker is gone but the parent has not read it yet. A parent that died does not count for ever."""
    orders = path.with_suffix(".case.json")
    return orders.exists() and time.time() - path.stat().st_mtime < ORDERS_SECONDS


def _unknown(
    batch: list[StoredJournal], known: dict[str, Path], done: Compaction
) -> list[StoredJournal]:
    """Those that no part holds yet. The others go if a part has the very same text, and are told if not."""
    held, unknown = _held(batch, known, done.problems), []
    for found in batch:
        if found.id not in held:
            unknown.append(found)
        elif held[found.id] == found.text:
            found.path.unlink(missing_ok=True)
            done.finished += 1
        else:
            done.problems.append(
                f"{found.path}: {known[found.id]} holds another text of this id; both are kept."
            )
    return unknown


def _held(
    batch: list[StoredJournal], known: dict[str, Path], problems: list[str]
) -> dict[str, str]:
    """What the parts say of these ids. Of a damaged part it is not relied on."""
    wanted: dict[Path, list[str]] = {}
    for found in batch:
        if found.id in known:
            wanted.setdefault(known[found.id], []).append(found.id)
    held: dict[str, str] = {}
    for path, names in wanted.items():
        try:
            held |= parts.texts(path, only=names)
        except parts.DamagedPart as problem:
            problems.append(str(problem))
    return held


def _move(
    store: FolderStore, batch: list[StoredJournal], known: dict[str, Path], done: Compaction
) -> None:
    """One part for these, all of one day. Of two journals with one id the first counts."""
    kept: dict[str, StoredJournal] = {}
    for found in batch:
        kept.setdefault(found.id, found)
    path = parts.write(
        store.parts.folder, "-".join(batch[0].path.parts[-4:-1]), list(kept.values())
    )
    done.parts.append(path.name)
    known |= dict.fromkeys(kept, path)
    for found in batch:
        if kept[found.id].text == found.text:
            found.path.unlink(missing_ok=True)
            done.moved += 1
        else:
            done.problems.append(
                f"{found.path}: another journal has this id and another text; both are kept."
            )
