"""Slurm's own commands, each with a time limit: one that finds no controller waits for minutes."""

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
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED",
    "TIMEOUT",
)  # fmt: skip
ARRAY_MOST = 1001  # Slurm's own default of MaxArraySize
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


class NoAnswer(SteptimeError):
    """A command of Slurm's is absent, refuses, or does not return in time."""


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
    exit: str = ""  # code or signal, in words

    @property
    def id(self) -> str:
        return f"{self.array}_{self.index}"


def is_over(state: str) -> bool:
    return state in OVER


class Slurm:
    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = seconds or _limit(os.environ.get(VARIABLE) or str(SECONDS))

    def call(self, *words: str, text: str | None = None) -> str:
        """What the command prints."""
        try:
            done = subprocess.run(
                words, input=text, capture_output=True, text=True, timeout=self.seconds, check=False
            )
        except FileNotFoundError:
            raise NoAnswer(
                f"There is no {words[0]} here. Is this a node from which Slurm can be reached?"
            ) from None
        except subprocess.TimeoutExpired:
            raise NoAnswer(
                f"{words[0]} did not answer within {self.seconds:g} s: Slurm's controller may be down. "
                f"Try again; ${VARIABLE} sets the time."
            ) from None
        if done.returncode:
            said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            raise NoAnswer(f"{' '.join(words[:3])} failed: {' '.join(said)}")
        return done.stdout

    def submit(self, script: str, *words: str) -> str:
        """The number of the array."""
        said = self.call("sbatch", "--parsable", *words, text=script).strip()
        number = said.rpartition("\n")[2].partition(";")[
            0
        ]  # a site's own sbatch may print something before it
        if not number.isdigit():
            raise NoAnswer(f"sbatch told no job number, found {said[:200]!r}. Is it Slurm's own?")
        return number

    def tasks(self, names: Sequence[str]) -> list[Task]:
        """Of the arrays with these names: all that wait or run, and those that ended a short while ago."""
        if not names:
            return []
        wanted = ",".join(f"{field}:255|" for field in FIELDS)
        lines = self.call(
            "squeue",
            "--noheader",
            "--array",
            "--states=all",
            f"--name={','.join(names)}",
            f"--Format={wanted}",
        )
        return [_task(line) for line in lines.splitlines() if line.strip()]

    def history(self, names: Sequence[str], since: str) -> dict[str, list[str]] | None:
        """The state in which each start of a task ended, oldest first. None: this Slurm keeps no accounts."""
        if not names:
            return None
        try:
            lines = self.call(
                "sacct", "--allocations", "--duplicates", "--noheader", "--parsable2", f"--starttime={since}",
                f"--name={','.join(names)}", "--format=JobID,Submit,State",
            )  # fmt: skip
        except NoAnswer:
            return None
        found: dict[str, list[tuple[str, str]]] = {}
        for line in lines.splitlines():
            identifier, submitted, state = line.split("|")
            found.setdefault(identifier, []).append((submitted, state.split()[0]))
        return {
            identifier: [state for _, state in sorted(starts)]
            for identifier, starts in found.items()
        }

    def largest_array(self) -> int:
        found = re.search(
            r"^MaxArraySize\s*=\s*(\d+)", self.call("scontrol", "show", "config"), re.M
        )
        return int(found[1]) if found else ARRAY_MOST

    def ending(self, task: str, restarts: int) -> str:
        """The state in which this start of a task, which Slurm has just told to end, will be over.
        Until it is, Slurm says COMPLETING, of one that it has put back into the queue, too."""
        said = self.call("scontrol", "--oneliner", "show", "job", task)
        told: dict[str, str] = dict(re.findall(r"(\w+)=(\S*)", said))
        if int(told.get("Restarts") or 0) > restarts:
            return "REQUEUED"
        state = told.get("JobState", "")
        if state != "COMPLETING":
            return state
        return "TIMEOUT" if told.get("Reason") == "TimeLimit" else "CANCELLED"

    def cancel(self, arrays: Iterable[str], *, waiting_only: bool = False) -> None:
        if arrays := list(arrays):
            self.call("scancel", *(["--state=PENDING"] if waiting_only else []), *arrays)


def _limit(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < (seconds := float(text)) < 1e6:
            return seconds
    raise SteptimeError(f"${VARIABLE} must be a number of seconds above 0, found {text!r}.")


def _task(line: str) -> Task:
    array, index, name, state, reason, node, left, restarts, code = (
        part.strip() for part in line.split("|")[:9]
    )
    return Task(
        array=array,
        index=int(index) if index.isdigit() else 0,
        name=name,
        state=state,
        reason="" if reason == "None" else reason,
        node=node,
        seconds_left=_seconds(left),
        restarts=int(restarts or 0),
        exit=_exit(code),
    )


def _exit(status: str) -> str:
    """squeue has what wait(2) had: the code in the high byte, a signal in the low one."""
    number = int(status) if status.isdigit() else 0
    return (
        f"signal {number & 127}" if number & 127 else f"exit code {number >> 8}" if number else ""
    )


def _seconds(text: str) -> float | None:
    """1-02:03:04, 02:03, UNLIMITED."""
    if not (found := re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", text)):
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
