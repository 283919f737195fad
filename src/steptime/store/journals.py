"""The journals of a folder one by one, each with the state its writer left it in. Changes nothing on the disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from steptime.core.record import Attempt
from steptime.store import reader
from steptime.store.journal import is_running

ENDED, RUNNING, WITHOUT_END, DAMAGED = "ended", "running", "without_end", "damaged"
OTHER = (RUNNING, WITHOUT_END, DAMAGED)


@dataclass(frozen=True, kw_only=True)
class StoredJournal:
    path: Path
    state: str
    text: str = ""  # of one that ended: the whole file
    attempt: Attempt | None = None  # none yet where its first line is not written
    problem: str = ""  # of a damaged one

    @property
    def id(self) -> str:
        return self.attempt.id if self.attempt else self.path.stem


def paths(folder: Path) -> list[Path]:
    """Oldest first, because the name is the id."""
    return sorted(folder.glob("journal/*/*/*/*.jsonl"), key=lambda path: path.name)


def scan(files: Iterable[Path]) -> Iterator[StoredJournal]:
    for path in files:
        try:
            yield inspect(path)
        except FileNotFoundError:
            continue  # meanwhile a compactor moved it into a part


def batches(files: Iterable[StoredJournal], most_characters: int) -> Iterator[list[StoredJournal]]:
    """As many at once as fit into memory."""
    batch: list[StoredJournal] = []
    characters = 0
    for file in files:
        batch.append(file)
        characters += len(file.text)
        if characters >= most_characters:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def inspect(path: Path) -> StoredJournal:
    """A journal without an end may belong to a writer on a machine whose locks are not seen here: it is never final."""
    problems: list[str] = []
    try:
        data = path.read_bytes()
        attempt, text = reader.parse(data, path, problems), data.decode()
        running = is_running(path)
    except FileNotFoundError:
        raise
    except (OSError, UnicodeDecodeError) as problem:
        return StoredJournal(
            path=path,
            state=DAMAGED,
            problem=f"{path}: not readable ({problem}); it is left as it is.",
        )
    if running:
        return StoredJournal(path=path, state=RUNNING)
    if problems:
        return StoredJournal(path=path, state=DAMAGED, problem=" ".join(problems))
    if attempt is None or not attempt.ended:
        return StoredJournal(path=path, state=WITHOUT_END, attempt=attempt)
    return StoredJournal(path=path, state=ENDED, text=text, attempt=attempt)
