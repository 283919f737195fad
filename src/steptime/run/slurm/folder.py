"""A campaign's folder on the shared file system: what was submitted, and which result counts.

Drivers on many nodes and commands of the user work in it at once, without locks. A decision is a
symbolic link: the first process makes it, completely or not at all, and all others read it."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from steptime.core.errors import SteptimeError
from steptime.core.job import Job
from steptime.core.record import Attempt
from steptime.store import reader
from steptime.store.atomic import atomic_write, fsync
from steptime.store.files import read_text
from steptime.store.folder import FolderStore
from steptime.store.journal import age_order
from steptime.store.permissions import make_folder, write_private

CAMPAIGNS = "campaigns"
# What every campaign.json has.
CAMPAIGN_TEXTS = ("plan", "name", "title", "started")
JOURNAL, LOST, TERMINATED = ".jsonl", ".lost.jsonl", ".term"


@dataclass(frozen=True, order=True)
class Key:
    """One start of one process."""

    slot: str  # which process of the plan
    task: str  # of the array
    restart: int  # how often Slurm has restarted the task

    def __str__(self) -> str:
        return f"{self.slot}.{self.task}.{self.restart}"

    @classmethod
    def parse(cls, text: str) -> Key:
        slot, task, restart = text.split(".")
        return cls(slot, task, int(restart))


def slot_of(job: Job) -> str:
    return f"{job.case.key}-{job.process}"


class DamagedCampaign(SteptimeError):
    """A file of the campaign cannot be read, or holds something else."""


class CampaignFolder:
    def __init__(self, store: FolderStore, session: str) -> None:
        self.store = store
        self.session = session
        self.path = store.path / CAMPAIGNS / session

    @property
    def running_folder(self) -> Path:
        return self.path / "running"

    def make(self, facts: dict[str, Any]) -> None:
        self.store.make()
        for name in ("arrays", "running", "outcomes", "results", "ghosts"):
            make_folder(self.path / name)
        with atomic_write(self.path / "campaign.json") as draft:
            draft.write_text(json.dumps({"session": self.session, **facts}, indent=1))

    def facts(self) -> dict[str, Any]:
        """What the campaign was started with. Raises if its file is damaged."""
        path = self.path / "campaign.json"
        try:
            facts = json.loads(read_text(path))
        except (OSError, ValueError, RecursionError):
            facts = None
        if not _are_facts(facts):
            raise DamagedCampaign(
                f"{path} is damaged: the campaign cannot be continued or shown. Its results are in "
                f"the store. Move the folder {self.path} away."
            )
        return dict(facts)

    # arrays: what was handed to Slurm

    def add_array(self, tasks: Sequence[Sequence[Job]], machine: str) -> Path:
        """Make the array's folder, complete before it is submitted.

        The folder's number is part of the array's name in Slurm."""
        number = len(self.array_folders())
        folder = self.path / "arrays" / f"{number:04d}"
        make_folder(folder / "log")
        write_private(folder / "machine.toml", machine)
        with atomic_write(folder / "index.json") as draft:
            draft.write_text(json.dumps([[job.to_dict() for job in jobs] for jobs in tasks]))
        return folder

    def array_folders(self) -> list[Path]:
        return sorted(path.parent for path in self.path.glob("arrays/*/index.json"))

    def read_tasks(self, array: Path) -> list[list[Job]]:
        """The jobs of each task of the array."""
        path = array / "index.json"
        try:
            tasks = json.loads(read_text(path))
            return [[Job.from_dict(values) for values in task] for task in tasks]
        except (
            OSError,
            ValueError,
            TypeError,
            KeyError,
            AttributeError,
            RecursionError,
        ) as problem:
            raise DamagedCampaign(f"{path} is damaged: move {self.path} away.") from problem

    def slots(self, array: Path) -> list[str]:
        """The processes of the array."""
        return [slot_of(job) for jobs in self.read_tasks(array) for job in jobs]

    def newest_array(self) -> float:
        """When the latest one was written, as seconds since the epoch."""
        indexes = self.path.glob("arrays/*/index.json")
        return max((path.stat().st_mtime for path in indexes), default=0.0)

    def set_number(self, array: Path, number: str) -> None:
        """Note Slurm's number of the array.

        `submit` does, and every task of the array, because `submit` may have been killed."""
        with contextlib.suppress(FileExistsError):
            os.symlink(number, array / "job")

    def name(self, array: Path) -> str:
        return f"steptime-{self.session}-{array.name}"

    # attempts: what became of each start

    def journal(self, key: Key) -> Path:
        return self.running_folder / f"{key}{JOURNAL}"

    def open_keys(self) -> Iterator[Key]:
        """Starts whose journal is not delivered to the store yet."""
        for path in sorted(self.running_folder.glob(f"*{JOURNAL}")):
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
        attempts = []
        for entry in self._entries("outcomes"):
            slot = Key.parse(entry.name).slot
            if slot not in done:
                attempts.append((os.readlink(entry.path), slot))
        # Ids sort by time, so the last attempt of a slot wins.
        return {slot: identifier for identifier, slot in sorted(attempts)}

    def ghosts(self) -> list[Path]:
        return sorted((self.path / "ghosts").glob(f"*{JOURNAL}"))

    def deliver(self, path: Path) -> Attempt | None:
        """Move an ended journal into the store, or aside: a slot has one result.

        Any process may do it, repeatedly, and after an interruption anywhere. But it should run
        the attempt itself, or know that nobody runs it any more: a driver expects its journal.
        None if the journal was set aside or is gone."""
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

    def _claim(self, folder: str, name: str, identifier: str) -> bool:
        """Whether the name is this attempt's, now or already before."""
        link = self.path / folder / name
        try:
            os.symlink(identifier, link)
            fsync(link.parent)
            return True
        except FileExistsError:
            return os.readlink(link) == identifier

    def _set_aside(self, path: Path) -> None:
        if path.name.endswith(LOST):
            # It was written down as lost, and then its result came.
            path.unlink(missing_ok=True)
            return
        with contextlib.suppress(FileNotFoundError):
            path.rename(self.path / "ghosts" / path.name)

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self.path / folder) as entries:
                return [entry for entry in entries if entry.is_symlink()]
        except FileNotFoundError:
            return []


@dataclass(frozen=True)
class TaskJournal:
    """A `JournalStore` (core/executor.py) on a node: journals begin in the campaign's folder."""

    folder: CampaignFolder
    key: Key

    @property
    def path(self) -> Path:
        return self.folder.store.path

    def journal(self, identifier: str) -> Path:
        return self.folder.journal(self.key)


def _are_facts(values: Any) -> bool:
    if not isinstance(values, dict):
        return False
    if not all(isinstance(values.get(name), str) for name in CAMPAIGN_TEXTS):
        return False
    try:
        # In local time, which is what Slurm is asked with. The first and the last year have none.
        datetime.fromisoformat(values["started"]).astimezone()
    except (ValueError, OverflowError):
        return False
    return True


def find(store: FolderStore, wanted_id: str = "") -> CampaignFolder:
    """The newest campaign, or the one whose id begins or ends with this."""
    paths = store.path.glob(f"{CAMPAIGNS}/*/campaign.json")
    names = sorted((path.parent.name for path in paths), key=age_order)
    if not names:
        raise SteptimeError(
            f"There is no campaign in {store.path}. `steptime submit PLAN` starts one."
        )
    matches = [name for name in names if name.startswith(wanted_id) or name.endswith(wanted_id)]
    if not matches:
        raise SteptimeError(f"{wanted_id!r} names no campaign in {store.path}: {', '.join(names)}.")
    if wanted_id and len(matches) > 1:
        raise SteptimeError(
            f"{wanted_id!r} names several campaigns in {store.path}: {', '.join(matches)}."
        )
    return CampaignFolder(store, matches[-1])


def _move(path: Path, target: Path) -> bool:
    """Move without replacing: make a second link, then remove the first. False if that fails."""
    try:
        os.link(path, target)
    except FileExistsError:
        if not path.exists() or not path.samefile(target):
            return False
    except FileNotFoundError:
        return False  # another process was faster
    except OSError:
        # A file system without hard links.
        if target.exists():
            return False
        path.rename(target)
        return True
    path.unlink(missing_ok=True)
    return True
