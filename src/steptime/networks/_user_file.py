"""Describe a network of a user's file without running the file's code in this process.

The file may loop, crash, print or exit. Only the process that runs it suffers."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import IO, Any

from steptime.core.errors import SteptimeError, UnreadableFile

SECONDS = 60.0
MEMORY_BYTES = 8 << 30
VARIABLE = "STEPTIME_LOAD_SECONDS"
OUTPUT_CHARACTERS = 2000
MOST_MILLISECONDS = 2**31 - 1  # the longest wait that poll() accepts


def is_user_file(name: str) -> bool:
    """Whether it is `FILE.py:NAME`."""
    path, colon, _ = name.rpartition(":")
    return colon == ":" and path.endswith(".py")


def check_file(name: str) -> None:
    """All that can be said of it without running it."""
    path, _, inner_name = name.rpartition(":")
    if not Path(path).is_file():
        raise UnreadableFile(f"No file {path!r} for the network {inner_name!r}; give FILE.py:NAME.")


def describe(name: str) -> dict[str, Any]:
    check_file(name)
    file = Path(name.rpartition(":")[0]).resolve()
    answer = _ask(name, file, file.stat().st_mtime_ns, _limit_seconds())
    if "error" in answer:
        raise UnreadableFile(answer["error"])
    network: dict[str, Any] = answer["network"]
    return network


@cache
def _ask(name: str, file: Path, changed_ns: int, seconds: float) -> dict[str, Any]:
    """Cached: however many cases use the network, its file runs once until it is changed.

    An error is remembered, too: a file that hangs costs its time limit once."""
    with tempfile.TemporaryFile() as answers, tempfile.TemporaryFile() as output:
        code = _run(name, seconds, answers, output)
        answers.seek(0)
        output.seek(0)
        printed = output.read().decode(errors="replace")
        answer = _parse_answer(answers.read())
    if answer is None:
        return {"error": _explain_death(name, code, seconds, printed)}
    sys.stderr.write(printed)
    return answer


def _run(name: str, seconds: float, answers: IO[bytes], output: IO[bytes]) -> int | None:
    """The exit code; None if it took too long."""
    module = "steptime.networks._describe_file"
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", module, name, str(MEMORY_BYTES)],
        stdin=subprocess.DEVNULL,
        stdout=answers,
        stderr=output,
        # A group of its own, so that its children can be ended with it.
        start_new_session=True,
    )
    try:
        has_ended = _wait(process.pid, seconds)
    finally:
        # Before the process is reaped, so that the number of its group is still its own.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return process.returncode if has_ended else None


def _wait(process: int, seconds: float) -> bool:
    file = os.pidfd_open(process)
    try:
        poll = select.poll()
        poll.register(file, select.POLLIN)
        return bool(poll.poll(min(1000 * seconds, MOST_MILLISECONDS)))
    finally:
        os.close(file)


def _parse_answer(data: bytes) -> dict[str, Any] | None:
    """None: the process ended before it could answer."""
    with contextlib.suppress(ValueError):
        answer = json.loads(data)
        if isinstance(answer, dict) and ("error" in answer or "network" in answer):
            return answer
    return None


def _explain_death(name: str, code: int | None, seconds: float, printed: str) -> str:
    path = name.rpartition(":")[0]
    if code is None:
        sentence = f"was ended after {seconds:g} s. {VARIABLE} allows more"
    elif code < 0:
        sentence = f"was killed by {signal.Signals(-code).name}"
    else:
        sentence = f"ended its process with exit code {code} before its network was built"
    last_lines = printed.strip()[-OUTPUT_CHARACTERS:]
    return f"{path} {sentence}." + (f" It printed:\n{last_lines}" if last_lines else "")


def _limit_seconds() -> float:
    text = os.environ.get(VARIABLE) or str(SECONDS)
    with contextlib.suppress(ValueError):
        seconds = float(text)
        if 0 < seconds < float("inf"):
            return seconds
    raise SteptimeError(f"{VARIABLE} is {text!r}: it must be a positive number of seconds.")
