"""A worker in a container: its command line, what the container sees, and facts of its image.

Inside, paths are the same as outside, and so are the machine's name, its network and the worker's
variables."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import steptime
from steptime.core.container import MANAGED, Container
from steptime.core.job import Job
from steptime.run.local.environment import PARENT
from steptime.run.local.variables import RECORDED
from steptime.store.blobs import sha256_of

SECONDS = 30.0  # for a command that is no measurement
# Where steptime lies inside: everything else is found under its path outside.
PACKAGE = "/tmp/steptime-package"
PROGRAMS = {"bubblewrap": "bwrap"}
GPU_OPTIONS = {
    "podman": ("--device=nvidia.com/gpu=all",),
    "docker": ("--gpus=all",),
    "apptainer": ("--nv",),
    "bubblewrap": ("--dev-bind", "/dev", "/dev"),
}
HOST = ("--network=host", "--uts=host", "--ipc=host")


@dataclass(frozen=True)
class Mount:
    outside: str
    inside: str
    writable: bool = True

    def suffix(self, readonly: str) -> str:
        return "" if self.writable else readonly


@dataclass(frozen=True)
class Image:
    digest: str = ""
    absence: str = ""  # why there is no digest, or no image
    exists: bool = True


@dataclass(frozen=True)
class ContainerLaunch:
    container: Container
    source: str  # the machine file that names it

    @property
    def program(self) -> str:
        return PROGRAMS.get(self.container.kind, self.container.kind)

    @property
    def absence(self) -> str:
        """An image is never fetched: a download is no part of a measurement."""
        if not shutil.which(self.program):
            return (
                f"The machine file {self.source} names {self.container.kind}, "
                f"but {self.program} is not installed here."
            )
        image = find_image(self.container.kind, self.container.image)
        if image.exists:
            return ""
        return f"The machine file {self.source} names an image that is not here: {image.absence}"

    def describe(self) -> dict[str, Any]:
        image = find_image(self.container.kind, self.container.image)
        facts = self.container.to_dict()
        facts["digest"] = image.digest
        facts["version"] = _version(self.program)
        if not image.digest:
            facts["digest_absent"] = image.absence
        return {"container": facts}

    def variables(self, variables: dict[str, str]) -> dict[str, str]:
        """Packages are those of the image, and the worker's parent is a process inside."""
        adapted = dict(variables)
        adapted.pop(PARENT, None)
        adapted["PYTHONPATH"] = PACKAGE
        return adapted

    def command(self, job: Job, variables: Mapping[str, str], store: Path) -> list[str]:
        kind = self.container.kind
        options: list[str] = []
        if job.case.device.startswith("cuda"):
            options += GPU_OPTIONS[kind]
        if kind in MANAGED:
            options += _managed_options(job, variables)
        options += self.container.options
        mounts = find_mounts(job, variables, store)
        command = COMMANDS[kind](self.program, _expand(self.container.image), mounts, options)
        return [*command, self.container.python]

    def end(self, job: Job) -> None:
        """A daemon's process is no child of ours, so it does not end with its client."""
        if self.container.kind in MANAGED:
            _output_of(self.program, "rm", "--force", _container_name(job))


def find_mounts(job: Job, variables: Mapping[str, str], store: Path) -> list[Mount]:
    """The package, the working folder, the store, the datasets and the case's staging tier."""
    package = str(Path(steptime.__file__).resolve().parent)
    mounts = [Mount(package, f"{PACKAGE}/steptime", writable=False)]
    # A later entry wins: the store and the working folder stay writable if they hold the data.
    writable_by_folder = {
        _expand(job.options.get("tier") or ""): True,
        variables.get("STEPTIME_DATA", ""): False,
        str(store.absolute()): True,
        os.getcwd(): True,
    }
    for folder, writable in sorted(writable_by_folder.items()):
        if folder not in ("", "/") and os.path.isdir(folder):
            mounts.append(Mount(folder, folder, writable))
    return mounts


def _managed_options(job: Job, variables: Mapping[str, str]) -> list[str]:
    """The container's name, and the variables that go in with their values outside."""
    in_tier = set(re.findall(r"\$\{?(\w+)", job.options.get("tier") or ""))
    names = set()
    for name, value in variables.items():
        was_set_for_worker = os.environ.get(name) != value
        is_setting = name in RECORDED or name.startswith("STEPTIME_")
        if is_setting or name in in_tier or was_set_for_worker:
            names.add(name)
    return [f"--name={_container_name(job)}", *(f"--env={name}" for name in sorted(names))]


def _managed_command(
    program: str, image: str, mounts: list[Mount], options: list[str]
) -> list[str]:
    """podman, docker."""
    command = [program, "run", "--rm", "--interactive", "--pull=never", *HOST]
    if program == "docker":
        command.append(f"--user={os.getuid()}:{os.getgid()}")
    command.append(f"--workdir={os.getcwd()}")
    for mount in mounts:
        # Not --volume: a folder's name may contain a colon.
        paths = f"source={mount.outside},target={mount.inside}"
        command.append(f"--mount=type=bind,{paths}{mount.suffix(',readonly')}")
    return [*command, *options, image]


def _apptainer_command(
    program: str, image: str, mounts: list[Mount], options: list[str]
) -> list[str]:
    binds = [f"--bind={mount.outside}:{mount.inside}{mount.suffix(':ro')}" for mount in mounts]
    return [program, "exec", f"--pwd={os.getcwd()}", *binds, *options, image]


def _bubblewrap_command(
    program: str, image: str, mounts: list[Mount], options: list[str]
) -> list[str]:
    """The system is read-only, /tmp is its own, and the worker ends with its parent."""
    command = [program, "--ro-bind", image, "/", "--dev", "/dev", "--proc", "/proc"]
    command += ["--tmpfs", "/tmp", "--unshare-pid", "--die-with-parent"]
    for mount in mounts:
        bind = "--bind" if mount.writable else "--ro-bind"
        command += [bind, mount.outside, mount.inside]
    return [*command, "--chdir", os.getcwd(), *options]


Command = Callable[[str, str, list[Mount], list[str]], list[str]]
COMMANDS: dict[str, Command] = {
    "podman": _managed_command,
    "docker": _managed_command,
    "apptainer": _apptainer_command,
    "bubblewrap": _bubblewrap_command,
}


@cache
def find_image(kind: str, name: str) -> Image:
    """Looked up once in a session: an image that is replaced meanwhile is not noticed."""
    if kind in MANAGED:
        return _inspect_image(kind, name)
    path = Path(_expand(name))
    if kind == "bubblewrap":
        if not path.is_dir():
            return Image(absence=f"{path} is no folder.", exists=False)
        return Image(absence="a folder has no digest")
    if path.is_file():
        return Image(f"sha256:{sha256_of(path)}")
    if path.is_dir() or "://" in name:
        return Image(absence="only a .sif file has a digest")
    return Image(absence=f"{path} is no file.", exists=False)


def _inspect_image(program: str, name: str) -> Image:
    try:
        images = json.loads(_output_of(program, "image", "inspect", name) or "[]")
    except ValueError:
        images = []
    if not images:
        advice = f"`{program} pull {name}` fetches it."
        return Image(absence=f"{program} has no image {name}. {advice}", exists=False)
    facts = images[0]
    if facts.get("Digest"):
        return Image(facts["Digest"])
    for digest in facts.get("RepoDigests") or []:
        if "@" in digest:
            return Image(digest.partition("@")[2])
    # Built here and never pushed: it has only its own id.
    return Image(f"sha256:{facts['Id'].removeprefix('sha256:')}")


@cache
def _version(program: str) -> str:
    return _output_of(program, "--version")


def _output_of(*command: str) -> str:
    """What it prints; empty if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "" if done.returncode else done.stdout.strip()


def _container_name(job: Job) -> str:
    return f"steptime-{job.id}"


def _expand(name: str) -> str:
    return os.path.expandvars(os.path.expanduser(name))
