"""A folder with every kind of file that commands read, and stand-ins for what takes long.

No worker, no Slurm and no server starts: what a command does before and after that is real."""

from __future__ import annotations

import shlex
import shutil
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from command_line import call_command
from factories import make_attempt, make_times, write_journal
from mutations import FIXTURES, parse, real_journals, reseal
from odd_inputs import Hang, remove, time_limit
from steptime import formats
from steptime.cli import exit_codes, main
from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.core.errors import SteptimeError
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.core.record import Attempt, Failure
from steptime.formats import Original
from steptime.run.slurm.folder import CampaignFolder
from steptime.store import reader
from steptime.store.blobs import sha256_of
from steptime.store.compaction import compact
from steptime.store.folder import FolderStore
from steptime.store.imports import Imports
from steptime.store.journal import Journal, uuid7

FOREIGN = FIXTURES / "foreign"
EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
MOST_PROCESSES = 20
SMALL_BYTES = 25_000  # journals of more samples take longer to read and show nothing new
PLAN = """title = "A plan"
preset = "single"

[protocol]
least_steps = 5

[constants]
workload = "mnist-mlp"
framework = "numpy"
threads = 1

[sweep]
batch_size = [1, 2]
phase = ["training", "inference"]

[[exclude]]
when = { batch_size = 2, phase = "training" }
reason = "too large"

[[override]]
when = { batch_size = 1 }
set = { layout = "nhwc" }
"""
FACTS: dict[str, Any] = {
    "machine": {"cpu": "a CPU", "memory_bytes": 1000, "health": {"turbo": False}},
    "software": {"numpy": "2"},
    "peaks": {},
    "refused": {},
}


def foreign_files() -> dict[str, bytes]:
    """A small file of every format that can be imported, by its path in `fixtures/foreign`."""
    paths = [path for path in sorted(FOREIGN.rglob("*")) if path.is_file()]
    return {path.relative_to(FOREIGN).as_posix(): path.read_bytes() for path in paths}


class FakeExecutor:
    """Writes real journals and starts no process."""

    def __init__(self) -> None:
        self.count = 0

    def run(
        self, job: Job, store: FolderStore, on_line: Callable[[str], None] | None = None
    ) -> Attempt:
        self.count += 1
        # A protocol may ask for thousands.
        if self.count > MOST_PROCESSES:
            raise KeyboardInterrupt
        path = store.journal(job.id)
        with Journal(path) as journal:
            journal.begin(job)
            if job.task == "measure":
                measurement = make_attempt(make_times(self.count)).measurement
                assert measurement is not None
                journal.write_measurement(measurement)
            else:
                failure = Failure(cause=Cause.NOT_INSTALLED, reason="No worker starts here.")
                journal.write_failure(failure)
        attempt = reader.read(path)
        assert attempt is not None
        return attempt

    def resident(self, job: Job, store: FolderStore) -> None:
        raise SteptimeError("No worker starts here.")


def answer_for_slurm(_: object, *command: str, text: str | None = None) -> str:
    return {"sbatch": "7\n", "scontrol": "MaxArraySize = 1001\n"}.get(command[0], "")


def start_nothing(patch: pytest.MonkeyPatch) -> None:
    """Put the stand-ins in place."""
    patch.setattr("steptime.run.local.LocalExecutor", FakeExecutor)
    patch.setattr("steptime.run.slurm.client.Slurm.call", answer_for_slurm)
    # No download leaves this machine.
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        patch.setenv(name, "http://127.0.0.1:1")
    patch.setattr("uvicorn.Server.run", lambda server, sockets: sockets[0].close())
    patch.setattr("steptime.cli.commands.machine._inspect", lambda *_: {**FACTS})
    # What a crash of the machine would lose is not tested here.
    patch.setattr("os.sync", lambda: None)
    patch.setattr("os.fsync", lambda file: None)
    # Typer would build all commands anew for every call.
    patch.setattr("steptime.cli.main.app", typer.main.get_command(main.app))
    # It pauses between two looks at a campaign.
    patch.setattr("steptime.cli.commands.status.time", SimpleNamespace(sleep=lambda _: None))


@dataclass
class Workbench:
    folder: Path
    results: list[str] = field(default_factory=list)  # ids of measured attempts
    profile: str = ""  # a measured attempt of the case that was profiled
    campaign: str = ""

    _pristine: set[tuple[Path, int]] = field(default_factory=set)

    @property
    def store(self) -> FolderStore:
        return FolderStore(self.folder / "results")

    def fill(self) -> None:
        shutil.copytree(FOREIGN, self.folder / "foreign")
        shutil.copytree(FIXTURES / "store-v1", self.folder / "old")
        for path in EXAMPLES.iterdir():
            # Not __pycache__, which a network that was run leaves there.
            if path.is_file():
                shutil.copy(path, self.folder)
        (self.folder / "plan.toml").write_text(PLAN)
        (self.folder / "folder").mkdir()
        self._add_attempts()
        self._add_imports()
        self._add_campaign()
        self._add_machine_files()
        shutil.copytree(self.store.path, self.folder / "other", symlinks=True)
        self._pristine = _listing(self.store.path)

    def arguments(self, line: str, number: int = 0) -> list[str]:
        """The words of a command line, see `fill_in`."""
        return self.fill_in(shlex.split(line.replace("&", r"\&")), number)

    def fill_in(self, arguments: Sequence[str], number: int = 0) -> list[str]:
        """With ids of the store for the names in capitals.

        `number` makes the name of a new file unique."""
        words = {
            "RESULT": self.results[0],
            "OTHER": self.results[-1],
            "PROFILE": self.profile,
            "CAMPAIGN": self.campaign,
            "NEW": f"new-{number}",
        }
        filled_in = []
        for argument in arguments:
            for name, word in words.items():
                argument = argument.replace(name, word)
            filled_in.append(argument)
        return filled_in

    def restore(self) -> None:
        """Undo what commands have done to the store."""
        store = self.store.path
        listing = _listing(store)
        for path, _ in listing - self._pristine:
            remove(path)
        for path, _ in self._pristine - listing:
            path.parent.mkdir(parents=True, exist_ok=True)
            copy = self.folder / "other" / path.relative_to(store)
            shutil.copy2(copy, path, follow_symlinks=False)

    def _add_attempts(self) -> None:
        """Real ones of every task, moved into a part, and fake ones in journals."""
        shutil.copytree(FIXTURES / "real-store" / "machines", self.store.path / "machines")
        shutil.copytree(FIXTURES / "store-v1" / "blobs", self.store.path / "blobs")
        self.store.make()
        for journal in real_journals(self.folder / "journals"):
            if len(journal) < SMALL_BYTES:
                path = self.store.journal(parse(journal)[0]["id"])
                path.write_bytes(reseal(journal))
        compact(self.store)
        (profiled, *_) = self.store.attempts("profile")
        facts = {"machine": profiled.machine, "network": profiled.network}
        attempt = make_attempt(make_times(0), **profiled.case.to_dict(), **facts)
        self.profile = write_journal(self.store, attempt)
        for session in ("first", "second"):
            for batch_size in (1, 2):
                attempt = make_attempt(make_times(batch_size), batch_size=batch_size)
                self.results.append(write_journal(self.store, replace(attempt, session=session)))

    def _add_imports(self) -> None:
        with Imports(self.store.path) as imports:
            for name, data in foreign_files().items():
                original = Original(name, data, name)
                imports.keep(original.sha256, data, formats.read(original).runs)

    def _add_campaign(self) -> None:
        self.campaign = uuid7()
        campaign = CampaignFolder(self.store, self.campaign)
        started = "2026-01-01T00:00:00+00:00"
        campaign.make({"plan": "p", "name": "n", "title": "", "started": started})
        case = Case(workload="mnist-mlp", framework="numpy")
        job = Job(id=uuid7(), session="s", plan="p", process=0, case=case, protocol=Protocol())
        campaign.set_number(campaign.add_array([[job]], ""), "7")

    def _add_machine_files(self) -> None:
        text = (EXAMPLES / "psc-machine.toml").read_text()
        settings = self.folder / "config" / "steptime"
        settings.mkdir(parents=True)
        (settings / "machine.toml").write_text(text)
        machine_file = self.folder / "machine.toml"
        machine_file.write_text(f'{text}\n[frameworks.numpy]\npython = "python3"\n')
        trusted = f"{sha256_of(machine_file)} {machine_file.resolve()}\n"
        (settings / "trusted-machine-files").write_text(trusted)


def _listing(folder: Path) -> set[tuple[Path, int]]:
    """Every file with its size."""
    paths = [path for path in folder.rglob("*") if not path.is_dir()]
    return {(path, path.lstat().st_size) for path in paths}


def make_workbench(folder: Path, patch: pytest.MonkeyPatch) -> Workbench:
    """Makes the folder the working folder."""
    workbench = Workbench(folder)
    workbench.fill()
    patch.chdir(folder)
    patch.delenv("STEPTIME_STORE", raising=False)
    patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    patch.setenv("STEPTIME_LOAD_SECONDS", "5")
    start_nothing(patch)
    return workbench


DOCUMENTED_CODES = (
    exit_codes.OK,
    exit_codes.ERROR,
    exit_codes.WRONG_USAGE,
    exit_codes.ALL_FAILED,
    exit_codes.SOME_FAILED,
    exit_codes.REFUSED,
    exit_codes.INTERRUPTED,
)


def find_defect(arguments: Sequence[str]) -> str:
    """What is wrong with the end of this command, whatever it was given; empty if nothing."""
    try:
        with time_limit():
            result = call_command(*arguments)
    except Hang as hang:
        return str(hang)
    except Exception:
        return traceback.format_exc(limit=-3)
    if "Traceback" in result.stderr:
        return result.stderr[-500:]
    if result.returncode not in DOCUMENTED_CODES:
        return f"exit code {result.returncode}"
    if result.returncode == exit_codes.OK and not result.stdout.strip():
        return "exit code 0, and nothing was shown"
    if result.returncode and not (result.stdout + result.stderr).strip():
        return f"exit code {result.returncode} without a reason"
    return ""
