"""What starts the worker of a framework: this interpreter, or what the machine file names for it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import steptime
from steptime import plugins
from steptime.core.errors import SteptimeError
from steptime.core.job import Job
from steptime.plan.machine_file import MachineFile, parse
from steptime.run.local.environment import PARENT

VARIABLE, NAME = "STEPTIME_MACHINE", "machine.toml"


@dataclass(frozen=True)
class Launch:
    """Words before `-P -m steptime.worker …`."""

    command: tuple[str, ...]
    source: str = ""  # the machine file that says so

    @property
    def words(self) -> list[str]:
        return [os.path.expanduser(self.command[0]), *self.command[1:]]

    @property
    def absence(self) -> str:
        """Why nothing can be started with it; empty: it is there."""
        if not self.source or shutil.which(self.words[0]):
            return ""
        return f"The machine file {self.source} names {self.command[0]}, which is not there or cannot be run."

    def variables(self, own: dict[str, str]) -> dict[str, str]:
        """Another interpreter has its own packages, and of ours only steptime. A wrapper between us and the worker is
        the worker's parent, so that it must not look for us."""
        if not self.source:
            return own
        kept = {name: value for name, value in own.items() if name != PARENT}
        folders = [_package_alone(), *filter(None, [own.get("PYTHONPATH")])]
        return {**kept, "PYTHONPATH": os.pathsep.join(folders)}

    def line(self, job: Job, variables: Mapping[str, str], store: Path) -> list[str]:
        return self.words

    def end(self, job: Job) -> None:
        """Nothing is left: the worker is in the group that was ended."""

    def told(self) -> dict[str, Any]:
        return {"launch": list(self.command)} if self.source else {}


def machine_file(named: str = "") -> MachineFile:
    """This one, else `$STEPTIME_MACHINE`, else `machine.toml` in the working folder, else the user's own; empty where
    none is."""
    path = Path(named) if named else _find()
    if path is None:
        return MachineFile()
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise SteptimeError(f"The machine file {path} cannot be read: {problem}.") from None
    return parse(text, str(path), plugins.names("frameworks"))


def _find() -> Path | None:
    if named := os.environ.get(VARIABLE):
        return Path(named)  # a file that was asked for must be there
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return next(
        (path for path in (Path(NAME), settings / "steptime" / NAME) if path.is_file()), None
    )


@cache
def _package_alone() -> str:
    """A folder with nothing but this package: beside the installed one lie packages of another interpreter."""
    folder = tempfile.TemporaryDirectory(prefix="steptime-source-")
    _kept.append(folder)
    (Path(folder.name) / "steptime").symlink_to(Path(steptime.__file__).parent)
    return folder.name


_kept: list[tempfile.TemporaryDirectory[str]] = []  # removed when the process ends
