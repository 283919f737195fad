"""Start-up, errors as sentences, exit codes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from steptime import __version__
from steptime.cli.main import AFTER_INTERRUPT, COMMANDS, spoken
from steptime.core.errors import SteptimeError

Command = Callable[..., "subprocess.CompletedProcess[str]"]


def raising(problem: BaseException) -> Callable[..., None]:
    def command() -> None:
        raise problem

    return spoken(command)


@pytest.mark.parametrize(("problem", "code"), [(SteptimeError("No such thing."), 1), (KeyboardInterrupt(), 130)])
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


def test_a_mistake_exits_1_without_a_traceback(steptime: Command) -> None:
    done = steptime("run", "--workload", "lenet6")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: No workload 'lenet6'. Did you mean 'lenet5'?\n"


def test_a_reader_that_stops_reading_is_no_error(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with subprocess.Popen(
        [sys.executable, "-m", "steptime", "show", "resnet50"], stdout=writing, stderr=subprocess.PIPE, cwd=tmp_path
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
            [sys.executable, "-m", "steptime", "list"], stdout=full, stderr=subprocess.PIPE, cwd=tmp_path, check=False
        )
    assert done.returncode == 1
    assert done.stderr == b"error: The output can not be written: No space left on device.\n"


def test_a_terminal_without_the_letters_gets_question_marks(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "steptime", "show", "lenet5"],
        capture_output=True, cwd=tmp_path, env={**os.environ, "PYTHONIOENCODING": "ascii"}, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"") and b"16 ? 10 ? 10" in done.stdout


def test_what_measures_promises_to_continue_after_an_interrupt() -> None:
    assert all("the same command continues" in AFTER_INTERRUPT[name] for name in ("run", "compare"))
