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

from command_line import Command, Process, Snapshot
from steptime import __version__
from steptime.cli.exit_codes import ALL_FAILED, SOME_FAILED, exit_if_failed
from steptime.cli.main import (
    AFTER_INTERRUPT,
    COMMAND_GROUPS,
    GROUPS,
    empty_arguments,
    report_errors,
)
from steptime.core.cause import Cause
from steptime.core.errors import SteptimeError
from steptime.store.folder import FolderStore

COMMANDS = [name for names in GROUPS.values() for name in names]
GROUPED_COMMANDS = [
    *(("store", name) for name in ("check", "compact", "push", "merge", "convert")),
    *(("data", name) for name in ("list", "fetch")),
]
LONGEST_SUMMARY = 60


def raising(problem: BaseException) -> Callable[..., None]:
    def command() -> None:
        raise problem

    return report_errors(command)


@pytest.mark.parametrize(
    ("problem", "code"), [(SteptimeError("No such thing."), 1), (KeyboardInterrupt(), 130)]
)
def test_report_errors_exits_with_the_code_of_the_problem(
    problem: BaseException, code: int
) -> None:
    with pytest.raises(typer.Exit) as ended:
        raising(problem)()
    assert ended.value.exit_code == code


def test_report_errors_prints_one_sentence_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        raising(SteptimeError("No such thing."))()
    assert capsys.readouterr() == ("", "error: No such thing.\n")


def test_report_errors_does_not_hide_bugs() -> None:
    with pytest.raises(ZeroDivisionError):
        raising(ZeroDivisionError())()


@pytest.mark.parametrize(("failed", "code"), [(1, SOME_FAILED), (2, ALL_FAILED)])
def test_exit_if_failed_distinguishes_some_from_all(failed: int, code: int) -> None:
    with pytest.raises(typer.Exit) as ended:
        exit_if_failed(failed, 2)
    assert ended.value.exit_code == code


def test_exit_if_failed_returns_without_failures() -> None:
    exit_if_failed(0, 2)


def test_help_of_the_program(steptime: Command, snapshot: Snapshot) -> None:
    shown = steptime("--help", columns=80)
    assert shown.returncode == 0
    snapshot("help", shown.stdout)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command(command: str, steptime: Command, snapshot: Snapshot) -> None:
    shown = steptime(command, "--help", columns=80)
    snapshot(f"help-{command}", shown.stdout)
    # Click wraps help at 80 columns on wider terminals too.
    assert steptime(command, "--help", columns=120).stdout == shown.stdout


@pytest.mark.parametrize(("group", "command"), GROUPED_COMMANDS)
def test_help_of_each_command_of_a_group(
    group: str, command: str, steptime: Command, snapshot: Snapshot
) -> None:
    snapshot(f"help-{group}-{command}", steptime(group, command, "--help", columns=80).stdout)


def test_help_fits_its_terminal_and_cuts_no_summary(steptime: Command) -> None:
    pages = [steptime("--help", columns=80).stdout]
    pages += [steptime(command, "--help", columns=80).stdout for command in COMMANDS]
    assert max(len(line) for page in pages for line in page.splitlines()) < 80
    summaries = [line[11:] for line in pages[0].splitlines() if line[2:9].strip() in COMMANDS]
    assert len(summaries) == len(COMMANDS)
    assert all(len(s) <= LONGEST_SUMMARY and not s.endswith("...") for s in summaries)


@pytest.mark.parametrize(
    "command", [name for name in COMMANDS if name not in ("guide", *COMMAND_GROUPS)]
)
def test_every_command_has_a_json_option(command: str, steptime: Command) -> None:
    assert "--json" in steptime(command, "--help").stdout


def test_version_option_prints_the_version(steptime: Command) -> None:
    assert steptime("--version").stdout == f"steptime {__version__}\n"


def test_wrong_usage_exits_2(steptime: Command) -> None:
    assert steptime("run", "--bach-size", "3").returncode == 2


@pytest.mark.parametrize("flags", [["--phase", ""], ["--phase="], ["--json", "--phase", " "]])
def test_empty_arguments_finds_a_flag_without_value(flags: list[str]) -> None:
    assert empty_arguments(["run", *flags, "--dry-run"]) == ["--phase"]


def test_empty_arguments_accepts_settings_and_values() -> None:
    arguments = ["run", "--phase=training", "--set", "weights=a=b", "--dry-run"]
    assert empty_arguments(arguments) == []


def test_an_empty_value_is_refused_with_exit_code_2(steptime: Command) -> None:
    done = steptime("run", "--workload", "", "--dry-run")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: --workload is empty: give it a value, or leave it out.\n"


def test_a_mistake_exits_1_without_a_traceback(steptime: Command) -> None:
    done = steptime("run", "--workload", "lenet6")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: No workload 'lenet6'. Did you mean 'lenet5'?\n"


def test_store_option_names_the_store(steptime: Command, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "STORE.json").write_text('{"format": 999}')
    done = steptime("--store", "mine", "run", "--dry-run")
    assert done.returncode == 1 and "The store mine has format 999" in done.stderr


def test_a_closed_stdout_is_no_traceback(tmp_path: Path) -> None:
    command = f"{sys.executable} -m steptime list presets >&-"
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_reader_that_stops_reading_is_no_error(steptime_process: Process) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with steptime_process("show", "resnet50", stdout=writing) as process:
        os.close(writing)
        assert process.communicate()[1] == ""
    assert process.returncode in (0, -signal.SIGPIPE)


def test_a_full_stdout_is_an_error_without_a_traceback(steptime_process: Process) -> None:
    with open("/dev/full", "w") as full, steptime_process("list", stdout=full) as process:
        error = process.communicate()[1]
    assert process.returncode == 1
    assert error == "error: The output cannot be written: No space left on device.\n"


def test_an_ascii_terminal_gets_plain_characters(
    steptime_process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    with steptime_process("show", "lenet5") as process:
        shown, error = process.communicate()
    assert (process.returncode, error) == (0, "") and "16 x 10 x 10" in shown


def test_commands_that_measure_promise_to_continue_after_an_interrupt() -> None:
    assert all("to continue" in AFTER_INTERRUPT[name] for name in ("run", "compare", "scaling"))


@pytest.mark.live
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signal_is_handled_like_an_interrupt(
    steptime_process: Process, tmp_path: Path, number: signal.Signals
) -> None:
    settings = ["framework=numpy", "precision=fp64", "protocol.least_seconds=60"]
    flags = [flag for setting in settings for flag in ("--set", setting)]
    arguments = ("--store", "results", "run", "--workload", "mnist-mlp", *flags)
    with steptime_process(*arguments) as process:
        while not list(tmp_path.glob("results/journal/*/*/*/*.jsonl")):
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(number)
        assert process.communicate()[1] == AFTER_INTERRUPT["run"] + "\n"
    assert process.returncode == 130
    assert {path.suffix for path in tmp_path.glob("results/journal/*/*/*/*")} == {".jsonl"}
    failure = FolderStore(tmp_path / "results").attempts()[-1].failure
    assert failure is not None and failure.cause == Cause.CANCELLED


LONG = "a" * 300


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", LONG, "--dry-run"),
        ("run", "--workload", f"{LONG}.py:net", "--dry-run"),
        ("import", LONG),
        ("submit", LONG),
    ],
)
def test_names_that_are_too_long_are_an_error(
    arguments: tuple[str, ...], steptime: Command
) -> None:
    done = steptime(*arguments)
    assert done.returncode == 1 and "cannot be used: File name too long" in done.stderr


def test_report_errors_explains_that_memory_ran_out(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        report_errors(raising(MemoryError()))()
    assert "Memory ran out" in capsys.readouterr().err


def test_report_of_a_store_whose_name_is_not_utf8(
    steptime: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPTIME_STORE", str(tmp_path / "caf\udce9"))
    done = steptime("report")
    assert done.returncode == 1 and "No results match this query" in done.stderr
