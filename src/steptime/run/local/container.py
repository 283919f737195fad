"""A worker in a container: the command line of each kind, what the container sees, and what is told of its image.

Inside, paths are the same as outside, and so are the machine's name, its network and the worker's variables."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import steptime
from steptime.core.container import MANAGED, Container
from steptime.core.job import Job
from steptime.run.local.environment import PARENT, TOLD
from steptime.store.blobs import sha256_of

SECONDS = 30.0  # for a question or an order that is no measurement
PACKAGE = "/tmp/steptime-package"  # where steptime lies inside: everything else is found under its own path
PROGRAMS = {"bubblewrap": "bwrap"}
KEPT = (*TOLD, "STEPTIME_")  # variables that go in beside those that were set for this process
DEVICES = {
    "podman": ("--device=nvidia.com/gpu=all",), "docker": ("--gpus=all",), "apptainer": ("--nv",),
    "bubblewrap": ("--dev-bind", "/dev", "/dev"),
}  # fmt: skip
HOST = ("--network=host", "--uts=host", "--ipc=host")


@dataclass(frozen=True)
class Mount:
    outside: str
    inside: str
    writable: bool = True

    def mark(self, readonly: str) -> str:
        return "" if self.writable else readonly


@dataclass(frozen=True)
class Image:
    """What was found when the machine was asked for it."""

    digest: str = ""
    absent: str = ""  # why there is no digest, or no image
    there: bool = True


@dataclass(frozen=True)
class ContainerLaunch:
    container: Container
    source: str  # the machine file that says so

    @property
    def program(self) -> str:
        return PROGRAMS.get(self.container.kind, self.container.kind)

    @property
    def absence(self) -> str:
        """Why nothing can be started in it. An image is never fetched: that is no part of a measurement."""
        if not shutil.which(self.program):
            return f"The machine file {self.source} names {self.container.kind}, and there is no {self.program} here."
        found = image(self.container.kind, self.container.image)
        return (
            ""
            if found.there
            else f"The machine file {self.source} names an image that is not here: {found.absent}"
        )

    def told(self) -> dict[str, object]:
        found = image(self.container.kind, self.container.image)
        version = _version(self.program)
        why = {} if found.digest else {"digest_absent": found.absent}
        return {
            "container": {
                **self.container.to_dict(),
                "digest": found.digest,
                "version": version,
                **why,
            }
        }

    def variables(self, own: dict[str, str]) -> dict[str, str]:
        """Folders of packages are those of the image; the worker's parent is somebody inside."""
        return {
            **{name: value for name, value in own.items() if name != PARENT},
            "PYTHONPATH": PACKAGE,
        }

    def line(self, job: Job, variables: Mapping[str, str], store: Path) -> list[str]:
        """Words before `-P -m steptime.worker …`."""
        devices = DEVICES[self.container.kind] if job.case.device.startswith("cuda") else ()
        names = _names(job, variables) if self.container.kind in MANAGED else []
        more = [*devices, *names, *self.container.options]
        seen, system = mounts(job, variables, store), _expanded(self.container.image)
        words = LINES[self.container.kind](self.program, system, seen, more)
        return [*words, self.container.python]

    def end(self, job: Job) -> None:
        """A process that was started by somebody else's daemon is no child of ours: it does not end with its client."""
        if self.container.kind in MANAGED:
            _asked(self.program, "rm", "--force", _name(job))


def mounts(job: Job, variables: Mapping[str, str], store: Path) -> list[Mount]:
    """The package, the working folder, the store, the data sets, and the tier to which this case's are staged."""
    package = Mount(
        str(Path(steptime.__file__).resolve().parent), f"{PACKAGE}/steptime", writable=False
    )
    tier = _expanded(job.options.get("tier") or "")
    folders = [
        (os.getcwd(), True),
        (str(store.absolute()), True),
        (variables.get("STEPTIME_DATA", ""), False),
    ]
    folders.append((tier, True))
    seen = {
        folder: may
        for folder, may in reversed(folders)
        if folder not in ("", "/") and os.path.isdir(folder)
    }
    return [package, *(Mount(folder, folder, may) for folder, may in sorted(seen.items()))]


def _names(job: Job, variables: Mapping[str, str]) -> list[str]:
    """Whose container it is, and which variables go in with the values that they have outside."""
    asked = set(re.findall(r"\$\{?(\w+)", job.options.get("tier") or ""))
    kept = (name for name in variables if name.startswith(KEPT) or name in asked)
    names = {*kept, *(name for name, value in variables.items() if os.environ.get(name) != value)}
    return [f"--name={_name(job)}", *(f"--env={name}" for name in sorted(names))]


def _managed(program: str, system: str, seen: list[Mount], more: list[str]) -> list[str]:
    """podman, docker. `--mount`, because a folder's name may hold a colon."""
    user = [f"--user={os.getuid()}:{os.getgid()}"] if program == "docker" else []
    folders = [
        f"--mount=type=bind,source={one.outside},target={one.inside}{one.mark(',readonly')}"
        for one in seen
    ]
    return [
        program, "run", "--rm", "--interactive", "--pull=never", *HOST, *user, f"--workdir={os.getcwd()}", *folders,
        *more, system,
    ]  # fmt: skip


def _apptainer(program: str, system: str, seen: list[Mount], more: list[str]) -> list[str]:
    folders = [f"--bind={one.outside}:{one.inside}{one.mark(':ro')}" for one in seen]
    return [program, "exec", f"--pwd={os.getcwd()}", *folders, *more, system]


def _bubblewrap(program: str, system: str, seen: list[Mount], more: list[str]) -> list[str]:
    """The system is read-only and /tmp its own; the worker ends with whoever started it."""
    own = [
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--tmpfs",
        "/tmp",
        "--unshare-pid",
        "--die-with-parent",
    ]
    folders = [
        word
        for one in seen
        for word in ("--bind" if one.writable else "--ro-bind", one.outside, one.inside)
    ]
    return [program, "--ro-bind", system, "/", *own, *folders, "--chdir", os.getcwd(), *more]


LINES = {"podman": _managed, "docker": _managed, "apptainer": _apptainer, "bubblewrap": _bubblewrap}


@cache
def image(kind: str, name: str) -> Image:
    """Asked once a session: whoever exchanges an image meanwhile measures two things."""
    path = Path(_expanded(name))
    if kind == "bubblewrap":
        if not path.is_dir():
            return Image(absent=f"{path} is no folder.", there=False)
        return Image(absent="a folder has no digest")
    if kind == "apptainer":
        if path.is_file():
            return Image(f"sha256:{sha256_of(path)}")
        if path.is_dir() or "://" in name:
            return Image(absent="only a .sif file has a digest")
        return Image(absent=f"{path} is no file.", there=False)
    return _inspected(kind, name)


def _inspected(program: str, name: str) -> Image:
    try:
        found = json.loads(_asked(program, "image", "inspect", name) or "[]")
    except ValueError:
        found = []
    if not found:
        return Image(
            absent=f"{program} knows no {name}. `{program} pull {name}` fetches it.", there=False
        )
    facts = found[0]
    pushed = [digest.partition("@")[2] for digest in facts.get("RepoDigests") or []]
    return Image(
        facts.get("Digest")
        or next(iter(pushed), "")
        or f"sha256:{facts['Id'].removeprefix('sha256:')}"
    )


@cache
def _version(program: str) -> str:
    return _asked(program, "--version")


def _asked(*words: str) -> str:
    """What it prints; nothing where it fails."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "" if done.returncode else done.stdout.strip()


def _name(job: Job) -> str:
    return f"steptime-{job.id}"


def _expanded(name: str) -> str:
    return os.path.expandvars(os.path.expanduser(name))
