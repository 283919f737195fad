"""Processes of an attempt are ended wherever they went; others are left alone."""

from __future__ import annotations

import os
import subprocess

from steptime.machine.leftovers import VARIABLE, end_leftovers


def start(attempt: str) -> subprocess.Popen[bytes]:
    variables = {**os.environ, VARIABLE: attempt}
    return subprocess.Popen(["sleep", "1000"], env=variables, start_new_session=True)


def test_end_leftovers_ends_only_processes_of_the_attempt() -> None:
    ours, theirs = start("attempt-1"), start("attempt-12")
    try:
        assert end_leftovers("attempt-1") >= 1
        assert ours.wait(5) == -9 and theirs.poll() is None
    finally:
        theirs.kill()
        theirs.wait()


def test_end_leftovers_finds_none() -> None:
    assert end_leftovers("no-such-attempt") == 0
