"""The command that starts a framework's worker: this interpreter, or one of the machine file."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import steptime
from steptime import plugins
from steptime.core.errors import SteptimeError
from steptime.core.job import Job
from steptime.plan.machine_file import MachineFile, parse
from steptime.run.local.environment import PARENT
from steptime.run.local.trust import check_trust, settings_folder
from steptime.store.files import read_text

VARIABLE = "STEPTIME_MACHINE"
NAME = "machine.toml"


class Launch(Protocol):
    """A way to start a worker: by an interpreter, a wrapper, or in a container."""

    @property
    def absence(self) -> str:
        """Why nothing can be started this way; empty if it can."""

    def describe(self) -> dict[str, Any]:
        """Facts for the attempt's record."""

    def variables(self, variables: dict[str, str]) -> dict[str, str]:
        """The worker's environment variables, adapted to this way of starting it."""

    def command(self, job: Job, variables: Mapping[str, str], store: Path) -> list[str]:
        """What comes before `-P -m steptime.worker …`."""

    def end(self, job: Job) -> None:
        """End what is left after the worker's process group was killed."""


@dataclass(frozen=True)
class InterpreterLaunch:
    arguments: tuple[str, ...]
    source: str = ""  # the machine file that names it; empty for this interpreter

    @property
    def program(self) -> str:
        return os.path.expanduser(self.arguments[0])

    @property
    def absence(self) -> str:
        if not self.source or shutil.which(self.program):
            return ""
        return (
            f"The machine file {self.source} names {self.arguments[0]}, "
            "which does not exist or cannot be run."
        )

    def describe(self) -> dict[str, Any]:
        return {"launch": list(self.arguments)} if self.source else {}

    def variables(self, variables: dict[str, str]) -> dict[str, str]:
        """Another interpreter has its own packages, and only steptime of ours."""
        if not self.source:
            return variables
        adapted = dict(variables)
        # A wrapper is the worker's parent, so the worker must not expect us to be it.
        adapted.pop(PARENT, None)
        folders = [_package_alone()]
        if variables.get("PYTHONPATH"):
            folders.append(variables["PYTHONPATH"])
        adapted["PYTHONPATH"] = os.pathsep.join(folders)
        return adapted

    def command(self, job: Job, variables: Mapping[str, str], store: Path) -> list[str]:
        return [self.program, *self.arguments[1:]]

    def end(self, job: Job) -> None:
        """Nothing is left: the worker is in the group that was killed."""


def machine_file(name: str = "") -> MachineFile:
    """Read the machine file of this name, or the usual one; empty if there is none.

    The usual one is `$STEPTIME_MACHINE`, else `machine.toml` in the working folder, which must be
    trusted, else `steptime/machine.toml` in the user's configuration folder."""
    path = Path(name) if name else _find()
    # The null device stands for no machine file at all.
    if path is None or path == Path(os.devnull):
        return MachineFile()
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as problem:
        raise SteptimeError(f"The machine file {path} cannot be read: {problem}.") from None
    return parse(text, str(path), plugins.names("frameworks"))


def _find() -> Path | None:
    name = os.environ.get(VARIABLE)
    if name:
        # Not checked: a file that the user asks for must exist.
        return Path(name)
    in_folder = Path(NAME)
    if in_folder.is_file():
        check_trust(in_folder)
        return in_folder
    usual = settings_folder() / NAME
    return usual if usual.is_file() else None


@cache
def _package_alone() -> str:
    """A folder with nothing but this package.

    The folder in which it is installed has packages of another interpreter beside it."""
    folder = tempfile.TemporaryDirectory(prefix="steptime-source-")
    _temporary_folders.append(folder)
    (Path(folder.name) / "steptime").symlink_to(Path(steptime.__file__).parent)
    return folder.name


# Python removes them when this process ends.
_temporary_folders: list[tempfile.TemporaryDirectory[str]] = []
