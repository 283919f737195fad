"""The machine file at work: other interpreters, wrappers, and what the record says of them."""

from __future__ import annotations

import os
import site
import subprocess
import sys
import venv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from steptime.core.case import Case
from steptime.core.errors import SteptimeError
from steptime.core.job import Job
from steptime.core.protocol import Protocol
from steptime.run.local import LocalExecutor, machine_file
from steptime.run.local.environment import PARENT
from steptime.run.local.launch import InterpreterLaunch
from steptime.run.local.trust import trust
from steptime.run.session import describe_machine
from steptime.store.folder import FolderStore
from steptime.store.journal import uuid7


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    def write_file(text: str) -> Path:
        path = tmp_path / "this-machine.toml"
        path.write_text(text)
        monkeypatch.setenv("STEPTIME_MACHINE", str(path))
        return path

    return write_file


@pytest.fixture
def job(short: Protocol) -> Job:
    case = Case(workload="mnist-mlp", framework="numpy", precision="fp64", batch_size=4, threads=1)
    return Job(id=uuid7(), session="s", plan="p", process=0, case=case, protocol=short)


@pytest.fixture
def interpreter(tmp_path: Path) -> Path:
    """A virtual environment with our packages but without steptime, which is editable."""
    venv.create(tmp_path / "other", with_pip=False, symlinks=True)
    (folder,) = (tmp_path / "other" / "lib").glob("python*/site-packages")
    (folder / "ours.pth").write_text("\n".join(site.getsitepackages()))
    return tmp_path / "other" / "bin" / "python"


def test_machine_file_is_empty_if_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("STEPTIME_MACHINE", raising=False)
    monkeypatch.chdir(tmp_path)
    assert machine_file().path == "" and machine_file().commands == {}


def test_machine_file_prefers_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("STEPTIME_MACHINE", raising=False)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for folder, name in ((tmp_path / "steptime", "theirs"), (tmp_path / "here", "ours")):
        folder.mkdir(exist_ok=True)
        (folder / "machine.toml").write_text(f'[frameworks.numpy]\npython = "{name}"')
        trust_if_here()
        assert machine_file().commands == {"numpy": (name,)}


def trust_if_here() -> None:
    if Path("machine.toml").exists():
        trust(Path("machine.toml"))


def test_machine_file_of_a_folder_must_be_trusted_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    monkeypatch.delenv("STEPTIME_MACHINE", raising=False)
    monkeypatch.chdir(tmp_path)
    path = Path("machine.toml")
    path.write_text('[frameworks.numpy]\npython = "theirs"')
    with pytest.raises(SteptimeError, match=r"is not trusted.*steptime machine --trust"):
        machine_file()
    trust(path)
    assert machine_file().commands == {"numpy": ("theirs",)}
    path.write_text('[frameworks.numpy]\npython = "changed"')
    with pytest.raises(SteptimeError, match="changed since"):
        machine_file()


def test_machine_file_needs_no_trust_if_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    monkeypatch.chdir(tmp_path)
    Path("machine.toml").write_text('[frameworks.numpy]\npython = "mine"')
    monkeypatch.setenv("STEPTIME_MACHINE", "machine.toml")
    assert machine_file().commands == {"numpy": ("mine",)}


def test_machine_file_must_exist_if_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPTIME_MACHINE", "/no/such/machine.toml")
    with pytest.raises(SteptimeError, match=r"/no/such/machine.toml cannot be read"):
        machine_file()


def test_describe_machine_includes_the_machine_file(write: Callable[[str], Path]) -> None:
    before = describe_machine()
    write('[frameworks.numpy]\npython = "python3"')
    assert describe_machine() != before


def test_variables_give_another_interpreter_only_steptime() -> None:
    variables = InterpreterLaunch(("python3",), "machine.toml").variables(
        {"PYTHONPATH": "/mine", PARENT: "1"}
    )
    ours, theirs = variables["PYTHONPATH"].split(os.pathsep)
    assert os.listdir(ours) == ["steptime"] and theirs == "/mine" and PARENT not in variables


@pytest.mark.live
@pytest.mark.usefixtures("no_orphans")
class TestWorkers:
    def test_run_uses_and_records_the_named_interpreter(
        self, write: Callable[[str], Path], interpreter: Path, job: Job, tmp_path: Path
    ) -> None:
        ask = [str(interpreter), "-c", "import steptime"]
        assert subprocess.run(ask, cwd=tmp_path, capture_output=True, check=False).returncode == 1
        write(f'[frameworks.numpy]\npython = "{interpreter}"')
        attempt = LocalExecutor().run(job, FolderStore(tmp_path / "results"))
        assert attempt.failure is None and attempt.measurement is not None
        assert attempt.environment["launch"] == [str(interpreter)]

    def test_run_uses_and_records_a_wrapper(
        self, write: Callable[[str], Path], job: Job, tmp_path: Path
    ) -> None:
        wrapper = tmp_path / "wrapper"
        wrapper.write_text(
            f'#!/bin/sh\necho started > {tmp_path}/seen\nshift\n"$@"\n'
        )  # no exec: it stays as a parent
        wrapper.chmod(0o755)
        write(f'[frameworks.numpy]\nlaunch = ["{wrapper}", "--rm", "{sys.executable}"]')
        attempt = LocalExecutor().run(job, FolderStore(tmp_path / "results"))
        assert attempt.failure is None and (tmp_path / "seen").exists()
        assert attempt.environment["launch"] == [str(wrapper), "--rm", sys.executable]

    def test_run_ignores_launchers_of_other_frameworks(
        self, write: Callable[[str], Path], job: Job, tmp_path: Path
    ) -> None:
        write('[frameworks.pytorch]\npython = "/no/such/python"')
        attempt = LocalExecutor().run(job, FolderStore(tmp_path / "results"))
        assert attempt.failure is None and "launch" not in attempt.environment

    def test_run_records_a_missing_interpreter(
        self, write: Callable[[str], Path], job: Job, tmp_path: Path
    ) -> None:
        path = write('[frameworks.numpy]\npython = "/no/such/python"')
        store = FolderStore(tmp_path / "results")
        attempt = LocalExecutor().run(job, store)
        assert attempt.failure is not None and attempt.failure.cause == "not_installed"
        assert f"{path} names /no/such/python" in attempt.failure.reason and store.attempts() == [
            attempt
        ]
        with pytest.raises(SteptimeError, match="names /no/such/python"):
            LocalExecutor().resident(job, store)

    def test_run_records_an_unknown_tier_as_unsupported(self, job: Job, tmp_path: Path) -> None:
        staged = replace(job, case=replace(job.case, staging="fast"))
        failure = LocalExecutor().run(staged, FolderStore(tmp_path / "results")).failure
        assert (
            failure is not None
            and failure.cause == "unsupported"
            and "has no 'fast'" in failure.reason
        )

    def test_run_ends_a_worker_that_is_silent(
        self, job: Job, short: Protocol, tmp_path: Path
    ) -> None:
        waiting = replace(
            job, protocol=replace(short, limit_seconds=3.0)
        )  # for turns that nobody hands out
        failure = (
            LocalExecutor()
            .run(waiting, FolderStore(tmp_path / "results"), lambda line: None)
            .failure
        )
        assert failure is not None and (failure.cause, failure.reason[:18]) == (
            "timed_out",
            "No line for 3 s: i",
        )
