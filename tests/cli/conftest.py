"""The command as a user meets it: arguments in; output and an exit code out.

`steptime` calls it inside this process, which saves the start-up of an interpreter per call.
`steptime_process` starts a real one, for tests of signals and streams."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import factories
from command_line import Command, Process, Snapshot, call_command
from factories import make_attempt, make_times, write_journal
from steptime import formats, plugins
from steptime.core.case import Case
from steptime.formats import Original
from steptime.store.folder import FolderStore
from steptime.store.imports import Imports

SNAPSHOTS = Path(__file__).parent / "snapshots"
PLUGINS = Path(__file__).parents[1] / "plugins"
SHORT = {
    "processes_least": 2,
    "processes_most": 2,
    "block_seconds": 0.01,
    "least_steps": 5,
    "least_seconds": 0.02,
    "warmup_steps": 10,
    "warmup_seconds": 0.02,
    "warmup_most_seconds": 0.1,
    "pair_block_seconds": 0.005,
    "pair_looks": 1,
    "pair_blocks": 2,
}
# What changes from run to run or from machine to machine, and what stands for it in a snapshot.
VOLATILE = {
    r"\x1b\[[0-9;]*m": "",
    r" +\n": "\n",
    r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}": "<uuid>",
    # As long as what they replace, so that columns keep their widths.
    r"\b\d{4}-\d\d-\d\d\b": "YYYY-MM-DD",
    r"\b\d\d:\d\d\b": "HH:MM",
    r"steptime \d+\.\d+\S*": "steptime <version>",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-snapshots", action="store_true", help="Rewrite tests/cli/snapshots.")


@pytest.fixture
def snapshot(request: pytest.FixtureRequest, tmp_path: Path) -> Snapshot:
    """Compares a text with snapshots/NAME.txt, or writes it there with --update-snapshots."""

    def check(name: str, text: str) -> None:
        text = text.replace(str(tmp_path), "<folder>")
        for pattern, placeholder in VOLATILE.items():
            text = re.sub(pattern, placeholder, text)
        path = SNAPSHOTS / f"{name}.txt"
        if request.config.getoption("--update-snapshots", default=False):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        assert path.exists(), "make it: pytest tests/cli --update-snapshots"
        assert text == path.read_text(), "if this is right: pytest tests/cli --update-snapshots"

    return check


@pytest.fixture
def steptime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    """Runs in an empty folder, so that `results` is this test's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STEPTIME_STORE", raising=False)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}

    yield call_command
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def steptime_process(tmp_path: Path) -> Process:
    """Starts a real process in this test's folder."""

    def start(*arguments: str, **options: Any) -> subprocess.Popen[str]:
        variables = {k: v for k, v in os.environ.items() if k != "STEPTIME_STORE"}
        defaults = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        defaults |= {"cwd": tmp_path, "env": variables}
        command = [sys.executable, "-u", "-P", "-m", "steptime", *arguments]
        return subprocess.Popen(command, **(defaults | options))

    return start


@pytest.fixture
def misbehaving(
    plug_ins: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """The frameworks of tests/plugins, in this process as well as in workers."""
    plug_ins(tmp_path, monkeypatch)
    monkeypatch.syspath_prepend(str(PLUGINS))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    _forget_plugins()
    yield
    _forget_plugins()


def _forget_plugins() -> None:
    for function in vars(plugins).values():
        if hasattr(function, "cache_clear"):
            function.cache_clear()


@pytest.fixture
def fixed_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids of stored attempts that count from 1, in the order of writing."""
    numbers = count(1)

    def uuid7() -> str:
        number = next(numbers)
        milliseconds = 1_767_225_600_000 + number
        return str(UUID(int=milliseconds << 80 | 7 << 76 | 2 << 62 | number))

    monkeypatch.setattr(factories, "uuid7", uuid7)


@pytest.fixture
def store_session(tmp_path: Path, fixed_ids: None) -> Callable[..., list[str]]:
    """Writes fake attempts of a session into this test's store; returns the first id of each case.

    The steps of the n-th case take n milliseconds times `slower`."""

    def write(
        cases: Sequence[Case],
        *,
        session: str = "s",
        plan: str = "p",
        processes: int = 3,
        slower: float = 1.0,
        **changes: Any,
    ) -> list[str]:
        store = FolderStore(tmp_path / "results")
        first_ids = []
        for number, case in enumerate(cases, 1):
            ids = []
            for process in range(processes):
                seed = 100 * number + process
                times = make_times(seed, centre_ns=1e6 * number * slower)
                # The cases take turns.
                environment = {"session_process": len(cases) * process + number - 1}
                facts = {"session": session, "plan": plan, "process": process}
                facts |= {"environment": environment, **changes}
                attempt = make_attempt(times, **case.to_dict(), **facts)
                ids.append(write_journal(store, attempt))
            first_ids.append(ids[0])
        return first_ids

    return write


@pytest.fixture
def keep(tmp_path: Path) -> Callable[[str, str], None]:
    """Takes a file of another tool into this test's store, as `steptime import` does."""

    def take(name: str, text: str) -> None:
        original = Original(name, text.encode(), name)
        with Imports(tmp_path / "results") as imports:
            imports.keep(original.sha256, original.data, formats.read(original).runs)

    return take


@pytest.fixture
def short_flags() -> list[str]:
    """A protocol that goes through everything and is too short to say anything."""
    flags = []
    for name, value in SHORT.items():
        flags += ["--set", f"protocol.{name}={value}"]
    return flags


@pytest.fixture
def short_settings() -> str:
    return ",".join(f"protocol.{name}={value}" for name, value in SHORT.items())
