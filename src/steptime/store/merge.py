"""Takes what another folder holds into this one. What is here already stays as it is; the other is only read."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from steptime.core.errors import SteptimeError
from steptime.store import journals, parts
from steptime.store.atomic import atomic_write, explain_write_errors
from steptime.store.blobs import Blobs
from steptime.store.folder import FolderStore
from steptime.store.journal import is_running
from steptime.store.journals import StoredJournal

NAMED_BY_CONTENT = ("imports/*.jsonl", "machines/*.json")


@dataclass
class Merged:
    """What was copied, by kind; what was here before; what was not taken, and why."""

    copied: Counter[str] = field(default_factory=Counter)
    present: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def count(self, kind: str, *, copied: bool) -> None:
        (self.copied if copied else self.present)[kind] += 1


def merge(store: FolderStore, other: FolderStore) -> Merged:
    if not (other.path / "STORE.json").is_file():
        raise SteptimeError(f"{other.path} is no store: it has no STORE.json.")
    if store.path.resolve() == other.path.resolve():
        raise SteptimeError(f"{other.path} is the store itself. Name another one.")
    store.make()
    done = Merged()
    with explain_write_errors(
        f"The store {store.path}", "What was copied is kept; make room and merge again."
    ):
        known = set(_known(store, done.problems))
        _journals(store, other, known, done)  # before parts: a compactor moves from there to here
        _parts(store, other, known, done)
        _blobs(Blobs(store.path), Blobs(other.path), done)
        for pattern in NAMED_BY_CONTENT:
            _files(store, other, pattern, done)
    return done


def _known(store: FolderStore, problems: list[str]) -> Iterator[str]:
    for path in store.parts.paths():
        try:
            yield from parts.ids(path)
        except parts.DamagedPart as problem:
            problems.append(str(problem))


def _journals(store: FolderStore, other: FolderStore, known: set[str], done: Merged) -> None:
    """A journal without an end is taken, too: it may be all that is left of a machine."""
    for found in journals.scan(journals.paths(other.path)):
        if found.state in (journals.ENDED, journals.WITHOUT_END):
            copied = found.id not in known and _journal(
                found, store.path / found.path.relative_to(other.path), done
            )
            done.count("journals", copied=copied)
            known.add(found.id)
        else:
            done.left[found.state] += 1
            done.problems += [found.problem] if found.problem else []


def _journal(found: StoredJournal, target: Path, done: Merged) -> bool:
    """Journals only grow: where one continues the other, the longer one counts."""
    theirs, ours = found.path.read_bytes(), target.read_bytes() if target.exists() else b""
    if target.exists() and (ours.startswith(theirs) or is_running(target)):
        return False
    if not theirs.startswith(ours):
        done.problems.append(
            f"{found.path}: {target} says something else of the same id; it is not taken."
        )
        return False
    log = found.path.with_suffix(".log")
    for source in (log, found.path) if log.exists() else (found.path,):
        _copy(source, target.with_name(source.name))
    return True


def _parts(store: FolderStore, other: FolderStore, known: set[str], done: Merged) -> None:
    for path in other.parts.paths():
        target = store.parts.folder / path.name
        try:
            new = not parts.is_whole(target) and not parts.ids(path) <= known
        except parts.DamagedPart as problem:
            done.problems.append(str(problem))
            continue
        if new:
            _copy(path, target)
        done.count("parts", copied=new)


def _blobs(ours: Blobs, theirs: Blobs, done: Merged) -> None:
    for name in theirs.names():
        new = not ours.is_whole(name)
        if new and not theirs.is_whole(name):
            done.problems.append(
                f"{theirs.path(name)}: its content is not what its name says; it is not taken."
            )
            continue
        if new:
            ours.put(theirs.path(name))
        done.count("blobs", copied=new)


def _files(store: FolderStore, other: FolderStore, pattern: str, done: Merged) -> None:
    for path in sorted(other.path.glob(pattern)):
        target = store.path / path.relative_to(other.path)
        new = not target.exists()
        if new:
            _copy(path, target)
        done.count(path.parent.name, copied=new)


def _copy(source: Path, target: Path) -> None:
    with atomic_write(target) as draft:
        shutil.copyfile(source, draft)
