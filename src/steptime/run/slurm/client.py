"""Slurm's commands, each with a time limit: without a controller they wait for minutes."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from steptime.core.errors import SteptimeError

SECONDS = 30.0
VARIABLE = "STEPTIME_SLURM_SECONDS"
OVER = (
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "REVOKED",
    "TIMEOUT",
)
ARRAY_MOST = 1001  # Slurm's default of MaxArraySize
# Columns of squeue, in the order in which `_parse_task` reads them.
FIELDS = (
    "ArrayJobID",
    "ArrayTaskID",
    "Name",
    "State",
    "Reason",
    "NodeList",
    "TimeLeft",
    "RestartCnt",
    "exit_code",
)


SACCT_COLUMNS = 3
COUNT = re.compile(r"[0-9]{1,18}")


class NoAnswer(SteptimeError):
    """A command of Slurm is missing, fails, or does not return in time."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One task of an array as Slurm sees it now."""

    array: str
    index: int
    name: str
    state: str
    reason: str = ""
    node: str = ""
    seconds_left: float | None = None
    restarts: int = 0
    exit: str = ""  # "exit code 1", "signal 9"

    @property
    def id(self) -> str:
        return f"{self.array}_{self.index}"


def is_over(state: str) -> bool:
    return state in OVER


class Slurm:
    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = seconds or _parse_limit(os.environ.get(VARIABLE) or str(SECONDS))

    def call(self, *command: str, text: str | None = None) -> str:
        """What the command prints."""
        try:
            done = subprocess.run(
                command,
                input=text,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=self.seconds,
                check=False,
            )
        except FileNotFoundError:
            raise NoAnswer(
                f"There is no {command[0]} here. Is this a node from which Slurm can be reached?"
            ) from None
        except OSError as problem:
            raise NoAnswer(f"{command[0]} cannot be run: {problem.strerror}.") from None
        except subprocess.TimeoutExpired:
            raise NoAnswer(
                f"{command[0]} did not answer within {self.seconds:g} s: "
                "Slurm's controller may be down. "
                f"Try again; ${VARIABLE} sets the time."
            ) from None
        if done.returncode:
            lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            raise NoAnswer(f"{' '.join(command[:3])} failed: {' '.join(lines)}")
        return done.stdout

    def submit(self, script: str, *arguments: str) -> str:
        """The number of the array."""
        output = self.call("sbatch", "--parsable", *arguments, text=script).strip()
        # A site's own sbatch may print something before it.
        last_line = output.rpartition("\n")[2]
        number = last_line.partition(";")[0]
        if not number.isdigit():
            raise NoAnswer(
                f"sbatch printed no job number, found {output[:200]!r}. Is it Slurm's own?"
            )
        return number

    def tasks(self, names: Sequence[str]) -> list[Task]:
        """Tasks of the arrays with these names: waiting, running, or ended a short while ago."""
        if not names:
            return []
        columns = ",".join(f"{field}:255|" for field in FIELDS)
        output = self.call(
            "squeue",
            "--noheader",
            "--array",
            "--states=all",
            f"--name={','.join(names)}",
            f"--Format={columns}",
        )
        return [_parse_task(line) for line in output.splitlines() if line.strip()]

    def history(self, names: Sequence[str], since: str) -> dict[str, list[str]] | None:
        """The state in which each start of a task ended, oldest first.

        None if this Slurm keeps no accounting records."""
        if not names:
            return None
        try:
            output = self.call(
                "sacct",
                "--allocations",
                "--duplicates",
                "--noheader",
                "--parsable2",
                f"--starttime={since}",
                f"--name={','.join(names)}",
                "--format=JobID,Submit,State",
            )
        except NoAnswer:
            return None
        starts: dict[str, list[tuple[str, str]]] = {}
        for line in output.splitlines():
            columns = line.split("|")
            # A site's own sacct may print other lines, too.
            if len(columns) != SACCT_COLUMNS or not columns[-1].strip():
                continue
            task, submitted, state = columns
            # "CANCELLED by 1000"
            starts.setdefault(task, []).append((submitted, state.split()[0]))
        states = {}
        for task, task_starts in starts.items():
            states[task] = [state for _, state in sorted(task_starts)]
        return states

    def largest_array(self) -> int:
        config = self.call("scontrol", "show", "config")
        match = re.search(r"^MaxArraySize\s*=\s*(\d+)", config, re.M)
        number = match[1] if match else ""
        return _parse_count(number) or ARRAY_MOST

    def final_state(self, task: str, restarts: int) -> str:
        """The final state of a start that Slurm has just told to end.

        Until it has ended, Slurm says COMPLETING, even if it will put the task back."""
        output = self.call("scontrol", "--oneliner", "show", "job", task)
        facts: dict[str, str] = dict(re.findall(r"(\w+)=(\S*)", output))
        if (_parse_count(facts.get("Restarts", "")) or 0) > restarts:
            return "REQUEUED"
        state = facts.get("JobState", "")
        if state != "COMPLETING":
            return state
        return "TIMEOUT" if facts.get("Reason") == "TimeLimit" else "CANCELLED"

    def cancel(self, arrays: Iterable[str], *, waiting_only: bool = False) -> None:
        numbers = list(arrays)
        if not numbers:
            return
        options = ["--state=PENDING"] if waiting_only else []
        self.call("scancel", *options, *numbers)


def _parse_limit(text: str) -> float:
    with contextlib.suppress(ValueError):
        seconds = float(text)
        if 0 < seconds < 1e6:
            return seconds
    raise SteptimeError(f"${VARIABLE} must be a number of seconds above 0, found {text!r}.")


def _parse_task(line: str) -> Task:
    columns = [column.strip() for column in line.split("|")]
    if len(columns) < len(FIELDS) or not columns[0].isdigit():
        # Without this line a running task would look lost, so nothing is concluded.
        raise NoAnswer(
            f"squeue printed a line that cannot be read: {line.strip()[:80]!r}. Is it Slurm's own?"
        )
    array, index, name, state, reason, node, left, restarts, status = columns[: len(FIELDS)]
    return Task(
        array=array,
        index=_parse_count(index) or 0,
        name=name,
        state=state,
        reason="" if reason == "None" else reason,
        node=node,
        seconds_left=_parse_seconds(left),
        restarts=_parse_count(restarts) or 0,
        exit=_describe_exit(status),
    )


def _parse_count(text: str) -> int | None:
    """None if it is no whole number, or one of more digits than Slurm ever prints."""
    return int(text) if COUNT.fullmatch(text) else None


def _describe_exit(status: str) -> str:
    """squeue has the status of wait(2): the code in the high byte, a signal in the low one."""
    number = _parse_count(status) or 0
    if number & 127:
        return f"signal {number & 127}"
    return f"exit code {number >> 8}" if number else ""


def _parse_seconds(text: str) -> float | None:
    """1-02:03:04, 02:03, UNLIMITED."""
    match = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", text)
    if not match:
        return None
    days, hours, minutes, seconds = (int(digits or 0) for digits in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
