"""A campaign's folder on the shared file system: who was asked for what, and which attempt's result counts.

Drivers on many nodes and commands at a desk work in it at once, without locks. A decision is a symbolic link: made
once, whole or not at all, by whoever is first. Everybody else reads what it says."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steptime.core.errors import SteptimeError
from steptime.core.job import Job
from steptime.core.record import Attempt
from steptime.store import reader
from steptime.store.atomic import atomic_write, fsync
from steptime.store.folder import FolderStore

CAMPAIGNS = "campaigns"
JOURNAL, LOST, TERMINATED = ".jsonl", ".lost.jsonl", ".term"


@dataclass(frozen=True, order=True)
class Key:
    """One start of one process: its place in the plan, the task of the array, how often Slurm restarted that."""

    slot: str
    task: str
    restart: int

    def __str__(self) -> str:
        return f"{self.slot}.{self.task}.{self.restart}"

    @classmethod
    def parse(cls, text: str) -> Key:
        slot, task, restart = text.split(".")
        return cls(slot, task, int(restart))


def slot_of(job: Job) -> str:
    return f"{job.case.key}-{job.process}"


class CampaignFolder:
    def __init__(self, store: FolderStore, session: str) -> None:
        self.store, self.session = store, session
        self.path = store.path / CAMPAIGNS / session

    @property
    def running(self) -> Path:
        return self.path / "running"

    def make(self, facts: dict[str, Any]) -> None:
        self.store.make()
        for name in ("arrays", "running", "outcomes", "results", "ghosts"):
            (self.path / name).mkdir(parents=True, exist_ok=True)
        with atomic_write(self.path / "campaign.json") as draft:
            draft.write_text(json.dumps({"session": self.session, **facts}, indent=1))

    def facts(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.path / "campaign.json").read_text())
        return found

    # arrays: what was handed to Slurm

    def add_array(self, tasks: Sequence[Sequence[Job]], machine: str) -> Path:
        """Complete before Slurm hears of it. The folder's number is part of the array's name there."""
        number = len(self.array_folders())
        folder = self.path / "arrays" / f"{number:04d}"
        (folder / "log").mkdir(parents=True, exist_ok=True)
        (folder / "machine.toml").write_text(machine)
        with atomic_write(folder / "index.json") as draft:
            draft.write_text(json.dumps([[job.to_dict() for job in jobs] for jobs in tasks]))
        return folder

    def array_folders(self) -> list[Path]:
        return sorted(path.parent for path in self.path.glob("arrays/*/index.json"))

    def slots(self, array: Path) -> list[str]:
        """Processes that were asked for with it."""
        tasks = json.loads((array / "index.json").read_text())
        return [slot_of(Job.from_dict(values)) for task in tasks for values in task]

    def newest_array(self) -> float:
        """When the latest one was written, as seconds since the epoch."""
        return max(
            (path.stat().st_mtime for path in self.path.glob("arrays/*/index.json")), default=0.0
        )

    def number(self, array: Path, number: str) -> None:
        """Slurm's number of the array: told by who submitted it, or by its first task if that one was killed."""
        with contextlib.suppress(FileExistsError):
            os.symlink(number, array / "job")

    def name(self, array: Path) -> str:
        return f"steptime-{self.session}-{array.name}"

    # attempts: what became of each start

    def journal(self, key: Key) -> Path:
        return self.running / f"{key}{JOURNAL}"

    def open_keys(self) -> Iterator[Key]:
        """Starts whose journal nobody has taken to its place yet."""
        for path in sorted(self.running.glob(f"*{JOURNAL}")):
            if not path.name.endswith(LOST):
                yield Key.parse(path.name.removesuffix(JOURNAL))

    def has_result(self, slot: str) -> bool:
        return (self.path / "results" / slot).is_symlink()

    def has_outcome(self, key: Key) -> bool:
        return (self.path / "outcomes" / str(key)).is_symlink()

    def results(self) -> dict[str, float]:
        """When each slot got its result, as seconds since the epoch."""
        return {
            entry.name: entry.stat(follow_symlinks=False).st_mtime
            for entry in self._entries("results")
        }

    def outcomes(self) -> set[Key]:
        return {Key.parse(entry.name) for entry in self._entries("outcomes")}

    def unsuccessful(self) -> dict[str, str]:
        """The attempt that each slot without a result ended with last, by its id."""
        done = self.results()
        entries = ((Key.parse(entry.name), entry) for entry in self._entries("outcomes"))
        lost = [(key, os.readlink(entry.path)) for key, entry in entries if key.slot not in done]
        return {key.slot: identifier for key, identifier in sorted(lost, key=lambda one: one[1])}

    def ghosts(self) -> list[Path]:
        return sorted((self.path / "ghosts").glob(f"*{JOURNAL}"))

    def deliver(self, path: Path) -> Attempt | None:
        """Takes an ended journal to its place in the store, or aside: a start has one outcome, a slot one result.

        May be done by anybody, again, and after having been interrupted anywhere. None: it was set aside, or gone.
        Only who runs it, or knows that nobody does any more, should: a driver looks for the journal it waits for."""
        attempt = reader.read(path)
        if attempt is None or not attempt.ended:
            return None
        key = Key.parse(path.name.removesuffix(LOST).removesuffix(JOURNAL))
        ours = self._claim("outcomes", str(key), attempt.id)
        if ours and attempt.measurement is not None:
            ours = self._claim("results", key.slot, attempt.id)
        if not ours:
            self._set_aside(path)
            return None
        target = self.store.journal(attempt.id)
        if not _move(path, target):
            self._set_aside(path)
            return None
        fsync(target.parent)
        return attempt

    def _claim(self, kind: str, name: str, identifier: str) -> bool:
        link = self.path / kind / name
        try:
            os.symlink(identifier, link)
            fsync(link.parent)
            return True
        except FileExistsError:
            return os.readlink(link) == identifier

    def _set_aside(self, path: Path) -> None:
        if path.name.endswith(LOST):
            path.unlink(missing_ok=True)  # we said that it was lost, and it was not
            return
        with contextlib.suppress(FileNotFoundError):
            path.rename(self.path / "ghosts" / path.name)

    def _entries(self, kind: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self.path / kind) as entries:
                return [entry for entry in entries if entry.is_symlink()]
        except FileNotFoundError:
            return []


@dataclass(frozen=True)
class TaskJournal:
    """A `JournalStore` (core/executor.py) on a node: the journal begins in the campaign's folder."""

    folder: CampaignFolder
    key: Key

    @property
    def path(self) -> Path:
        return self.folder.store.path

    def journal(self, identifier: str) -> Path:
        return self.folder.journal(self.key)


def find(store: FolderStore, word: str = "") -> CampaignFolder:
    """The newest campaign, or the one whose id begins or ends with this word."""
    names = sorted(path.parent.name for path in store.path.glob(f"{CAMPAIGNS}/*/campaign.json"))
    fitting = [name for name in names if name.startswith(word) or name.endswith(word)]
    if not names:
        raise SteptimeError(
            f"There is no campaign in {store.path}. `steptime submit PLAN` starts one."
        )
    if not fitting or (word and len(fitting) > 1):
        found = "several campaigns" if fitting else "no campaign"
        raise SteptimeError(
            f"{word!r} names {found} in {store.path}: {', '.join(fitting or names)}."
        )
    return CampaignFolder(store, fitting[-1])


def _move(path: Path, target: Path) -> bool:
    """Never over what is there already: a link is made once, then the old name goes. False: another text is there."""
    try:
        os.link(path, target)
    except FileExistsError:
        if not path.exists() or not path.samefile(target):
            return False
    except FileNotFoundError:
        return False  # somebody else was just as quick
    except OSError:  # a file system without hard links
        if target.exists():
            return False
        path.rename(target)
        return True
    path.unlink(missing_ok=True)
    return True
