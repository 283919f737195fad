from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from steptime.core.errors import SteptimeError
from steptime.run.slurm.client import NoAnswer, Slurm

Program = Callable[[str, str], None]
# As sacct 22.05 prints it: a task that lost its node and was restarted, one that somebody
# cancelled.
ACCOUNTS = (
    "7_0|2026-01-01T10:00:00|NODE_FAIL\n"
    "7_0|2026-01-01T10:01:00|COMPLETED\n"
    "7_1|2026-01-01T10:00:00|CANCELLED by 0"
)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """A command of Slurm's that does what a shell script says."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def write(name: str, script: str) -> None:
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)

    return write


def test_call_has_a_time_limit(program: Program) -> None:
    program("squeue", "exec sleep 60")
    with pytest.raises(
        NoAnswer, match=r"squeue did not answer within 0.2 s: Slurm's controller may be down"
    ):
        Slurm(seconds=0.2).tasks(["a"])


def test_call_reports_the_error_of_slurm(program: Program) -> None:
    program("sbatch", "echo 'sbatch: error: invalid partition specified: GPU' >&2; exit 1")
    with pytest.raises(
        NoAnswer, match=r"sbatch --parsable failed: sbatch: error: invalid partition specified: GPU"
    ):
        Slurm().submit("#!/bin/sh")


def test_call_explains_a_missing_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoAnswer, match=r"There is no squeue here"):
        Slurm().tasks(["a"])


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan", "inf"])
def test_slurm_refuses_a_wrong_time_limit(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPTIME_SLURM_SECONDS", text)
    with pytest.raises(SteptimeError, match=f"must be a number of seconds above 0, found '{text}'"):
        Slurm()


def test_submit_reads_the_number_without_the_cluster(program: Program) -> None:
    program("sbatch", "cat >/dev/null; echo '12;east'")
    assert Slurm().submit("#!/bin/sh") == "12"


def test_submit_ignores_output_before_the_number(program: Program) -> None:
    program("sbatch", "echo 'Welcome to the cluster'; echo '12;main'")
    assert Slurm().submit("#!/bin/sh") == "12"


def test_submit_refuses_an_answer_without_number(program: Program) -> None:
    program("sbatch", "echo hello world")
    with pytest.raises(NoAnswer, match="sbatch printed no job number, found 'hello world'"):
        Slurm().submit("#!/bin/sh")


def test_tasks_have_restarts_and_seconds_left(program: Program) -> None:
    program("squeue", "echo '7 |3 |steptime-a |RUNNING |None |k80-1 |1-00:01:30 |2 |1792 |'")
    (task,) = Slurm().tasks(["steptime-a"])
    assert (task.id, task.state, task.node, task.restarts, task.reason) == (
        "7_3",
        "RUNNING",
        "k80-1",
        2,
        "",
    )
    assert (task.seconds_left, task.exit) == (86_490, "exit code 7")


@pytest.mark.parametrize(
    "told, state",
    [
        ("JobState=COMPLETING Reason=None Dependency=(null) Requeue=1 Restarts=0", "CANCELLED"),
        ("JobState=COMPLETING Reason=None Dependency=(null) Requeue=1 Restarts=1", "REQUEUED"),
        ("JobState=COMPLETING Reason=TimeLimit Dependency=(null) Requeue=1 Restarts=0", "TIMEOUT"),
        ("JobState=NODE_FAIL Reason=NodeDown Dependency=(null) Requeue=1 Restarts=0", "NODE_FAIL"),
    ],
)
def test_final_state_is_known_while_completing(told: str, state: str, program: Program) -> None:
    program("scontrol", f"echo 'JobId=7 ArrayJobId=7 {told}'")
    assert Slurm().final_state("7_0", 0) == state


def test_history_has_the_state_of_each_start(program: Program) -> None:
    program("sacct", f"printf '{ACCOUNTS}'".replace("\n", "\\n"))
    assert Slurm().history(["a"], "2026-01-01") == {
        "7_0": ["NODE_FAIL", "COMPLETED"],
        "7_1": ["CANCELLED"],
    }


def test_history_is_none_without_accounting(program: Program) -> None:
    program("sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1")
    assert Slurm().history(["a"], "2026-01-01") is None


@pytest.mark.parametrize(
    "line", ["Welcome to the cluster!", "a|b|c", "x|0|n|RUNNING|None|n1|1:00|0|0", "\\377\\376|1"]
)
def test_tasks_concludes_nothing_from_junk_of_squeue(line: str, program: Program) -> None:
    program("squeue", f"printf '{line}\\n'")
    with pytest.raises(NoAnswer, match="squeue printed a line that cannot be read"):
        Slurm().tasks(["a"])


def test_tasks_reads_odd_numbers_as_unknown(program: Program) -> None:
    program("squeue", "echo '7|x|n|RUNNING|None|n1|soon|many|?'")
    (task,) = Slurm().tasks(["a"])
    assert (task.index, task.restarts, task.exit, task.seconds_left) == (0, 0, "", None)


def test_history_skips_junk_of_sacct(program: Program) -> None:
    program("sacct", f"echo 'a banner'; echo '7_2||'; echo '{ACCOUNTS}'")
    states = Slurm().history(["a"], "now")
    assert states is not None and sorted(states) == ["7_0", "7_1"]


def test_scontrol_junk_gives_defaults(program: Program) -> None:
    program("scontrol", "echo 'MaxArraySize = 0'; echo 'Restarts=many JobState=FAILED'")
    assert (Slurm().largest_array(), Slurm().final_state("7_0", 0)) == (1001, "FAILED")


def test_call_of_a_file_that_is_no_program_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "squeue").write_bytes(b"\x00junk")
    (tmp_path / "squeue").chmod(0o755)
    with pytest.raises(NoAnswer, match="squeue cannot be run"):
        Slurm().tasks(["a"])
