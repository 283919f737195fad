"""The exit codes of every command, and the rule that picks one after a measurement."""

from __future__ import annotations

import signal

import typer

# Scripts rely on these numbers; docs/commands/ lists them per command.
OK = 0
ERROR = 1
WRONG_USAGE = 2  # also what Typer itself uses
ALL_FAILED = 3
SOME_FAILED = 4
REFUSED = 5
# What a shell reports for a program that the signal ended.
INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM

SUMMARY = (
    "Exit codes: 0 success, 1 error, 2 wrong usage, 3 every case failed, 4 some cases failed, "
    "5 comparison refused, 130 interrupted (Ctrl-C, SIGTERM or SIGHUP)."
)


def exit_if_failed(failed: int, total: int) -> None:
    """End the command with the code for "all" or "some" if a case failed."""
    if failed:
        raise typer.Exit(ALL_FAILED if failed == total else SOME_FAILED)
