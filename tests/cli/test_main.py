"""Start-up, errors as sentences, exit codes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from steptime import __version__
from steptime.cli.main import AFTER_INTERRUPT, COMMANDS, empty_words, spoken
from steptime.core.cause import Cause
from steptime.core.errors import SteptimeError
from steptime.core.record import Failure
from steptime.store.folder import FolderStore

Command = Callable[..., "subprocess.CompletedProcess[str]"]


def raising(problem: BaseException) -> Callable[..., None]:
    def command() -> None:
        raise problem

    return spoken(command)


@pytest.mark.parametrize(
    ("problem", "code"), [(SteptimeError("No such thing."), 1), (KeyboardInterrupt(), 130)]
)
def test_what_a_user_causes_ends_with_its_exit_code(problem: BaseException, code: int) -> None:
    with pytest.raises(typer.Exit) as ended:
        raising(problem)()
    assert ended.value.exit_code == code


def test_a_mistake_is_one_sentence_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        raising(SteptimeError("No such thing."))()
    assert capsys.readouterr() == ("", "error: No such thing.\n")


def test_a_bug_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        raising(ZeroDivisionError())()


def test_help_names_every_command_and_the_exit_codes(steptime: Command) -> None:
    shown = steptime("--help")
    assert shown.returncode == 0
    assert all(f"\n  {name} " in shown.stdout for name in COMMANDS)
    assert "Exit codes: 0 fine" in shown.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_and_speaks_json(command: str, steptime: Command) -> None:
    shown = steptime(command, "--help")
    speaks = command == "guide" or "--json" in shown.stdout  # the guide's pages have an API
    assert shown.returncode == 0 and speaks


def test_the_version_is_told(steptime: Command) -> None:
    assert steptime("--version").stdout == f"steptime {__version__}\n"


def test_wrong_usage_exits_2(steptime: Command) -> None:
    assert steptime("run", "--bach-size", "3").returncode == 2


@pytest.mark.parametrize("words", [["--phase", ""], ["--phase="], ["--json", "--phase", " "]])
def test_a_flag_with_an_empty_value_is_found(words: list[str]) -> None:
    assert empty_words(["run", *words, "--dry-run"]) == ["--phase"]


def test_settings_and_values_are_not_taken_for_empty() -> None:
    assert empty_words(["run", "--phase=training", "--set", "weights=a=b", "--dry-run"]) == []


def test_an_empty_value_is_refused_and_not_taken_for_the_tour(steptime: Command) -> None:
    done = steptime("run", "--workload", "", "--dry-run")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: --workload is empty: give it a value, or leave it out.\n"


def test_a_closed_output_is_no_traceback(tmp_path: Path) -> None:
    command = f"{sys.executable} -m steptime list profiles >&-"
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_mistake_exits_1_without_a_traceback(steptime: Command) -> None:
    done = steptime("run", "--workload", "lenet6")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: No workload 'lenet6'. Did you mean 'lenet5'?\n"


def test_a_reader_that_stops_reading_is_no_error(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with subprocess.Popen(
        [sys.executable, "-m", "steptime", "show", "resnet50"],
        stdout=writing,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    ) as process:
        os.close(writing)
        assert process.communicate()[1] == b""
    assert process.returncode in (0, -signal.SIGPIPE)


def test_the_store_can_be_named_before_the_command(steptime: Command, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "STORE.json").write_text('{"format": 999}')
    done = steptime("--store", "mine", "run", "--dry-run")
    assert done.returncode == 1 and "The store mine has format 999" in done.stderr


def test_an_output_that_is_full_is_an_error_without_a_traceback(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "steptime", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == b"error: The output cannot be written: No space left on device.\n"


def test_a_terminal_without_the_letters_gets_plain_ones(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "steptime", "show", "lenet5"],
        capture_output=True, cwd=tmp_path, env={**os.environ, "PYTHONIOENCODING": "ascii"}, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"") and b"16 x 10 x 10" in done.stdout


def test_what_measures_promises_to_continue_after_an_interrupt() -> None:
    assert all("the same command continues" in AFTER_INTERRUPT[name] for name in ("run", "compare"))


@pytest.mark.live
def test_a_termination_is_an_interrupt(tmp_path: Path) -> None:
    settings = (
        "--set",
        "framework=numpy",
        "--set",
        "precision=fp64",
        "--set",
        "protocol.least_seconds=60",
    )
    words = ("--store", "results", "run", "--workload", "mnist-mlp", *settings)
    with subprocess.Popen(
        [sys.executable, "-m", "steptime", *words], stderr=subprocess.PIPE, cwd=tmp_path, text=True
    ) as process:
        while not list(tmp_path.glob("results/journal/*/*/*/*.jsonl")):
            assert process.poll() is None
            time.sleep(0.05)
        process.terminate()
        assert process.communicate()[1] == AFTER_INTERRUPT["run"] + "\n"
    assert process.returncode == 130
    assert {path.suffix for path in tmp_path.glob("results/journal/*/*/*/*")} == {".jsonl"}
    assert FolderStore(tmp_path / "results").attempts()[-1].failure == Failure(
        cause=Cause.CANCELLED, reason="Interrupted."
    )
