"""Run several steptime commands at a time, for work that is not timed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from subprocess import DEVNULL, Popen

from steptime.machine.leftovers import die_with_parent

POLL_SECONDS = 0.2


def run_side_by_side(
    commands: Mapping[str, Sequence[str]],
    jobs: int,
    on_start: Callable[[int, list[str]], None],
) -> None:
    """Call `on_start` with how many have ended and which run. What they print is dropped."""
    waiting = list(commands)
    running: dict[str, Popen[bytes]] = {}
    try:
        while waiting or running:
            for name, process in list(running.items()):
                if process.poll() is not None:
                    del running[name]
            while waiting and len(running) < jobs:
                name = waiting.pop(0)
                running[name] = _start(commands[name])
                ended = len(commands) - len(waiting) - len(running)
                on_start(ended, list(running))
            time.sleep(POLL_SECONDS)
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.wait()


def _start(arguments: Sequence[str]) -> Popen[bytes]:
    return Popen(
        [sys.executable, "-P", "-m", "steptime", *arguments],
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=DEVNULL,
        # Ctrl-C reaches this process alone, which then ends them once.
        start_new_session=True,
        preexec_fn=die_with_parent,
    )
