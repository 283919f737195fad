"""The journals of a folder, each with the state its writer left it in. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from steptime.core.record import Attempt
from steptime.store import reader
from steptime.store.files import read_bytes
from steptime.store.journal import is_running

ENDED = "ended"
RUNNING = "running"
WITHOUT_END = "without_end"
DAMAGED = "damaged"
OTHER = (RUNNING, WITHOUT_END, DAMAGED)


@dataclass(frozen=True, kw_only=True)
class StoredJournal:
    """One journal, in a file of its own or in a part."""

    path: Path
    state: str
    # The complete text, if the journal ended.
    text: str = ""
    # None if the first line is not written yet.
    attempt: Attempt | None = None
    # Why it is damaged.
    problem: str = ""

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
            # A compactor has moved it into a part.
            continue


def batches(
    journals: Iterable[StoredJournal], most_characters: int
) -> Iterator[list[StoredJournal]]:
    """As many at once as fit into memory."""
    batch: list[StoredJournal] = []
    characters = 0
    for journal in journals:
        batch.append(journal)
        characters += len(journal.text)
        if characters >= most_characters:
            yield batch
            batch = []
            characters = 0
    if batch:
        yield batch


def inspect(path: Path) -> StoredJournal:
    """Read a journal and judge its state.

    One without an end is never final: its writer may run on a machine whose locks are not
    visible here."""
    problems: list[str] = []
    try:
        data = read_bytes(path)
        attempt = reader.parse(data, path, problems)
        text = data.decode()
        running = is_running(path)
    except FileNotFoundError:
        raise
    except (OSError, UnicodeDecodeError) as problem:
        sentence = f"{path}: not readable ({problem}); it is left as it is."
        return StoredJournal(path=path, state=DAMAGED, problem=sentence)
    if running:
        return StoredJournal(path=path, state=RUNNING)
    if problems:
        return StoredJournal(path=path, state=DAMAGED, problem=" ".join(problems))
    if attempt is None or not attempt.ended:
        return StoredJournal(path=path, state=WITHOUT_END, attempt=attempt)
    return StoredJournal(path=path, state=ENDED, text=text, attempt=attempt)
