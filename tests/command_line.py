"""Calls the command `steptime` inside this process, for tests."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest import mock

from steptime.cli.main import main


@dataclass
class Result:
    returncode: int
    stdout: str
    stderr: str


Command = Callable[..., Result]
Process = Callable[..., "subprocess.Popen[str]"]
Snapshot = Callable[[str, str], None]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def call_command(*arguments: str, columns: int = 0) -> Result:
    """With `columns` the output is a terminal of that width, else a pipe."""
    stdout = Terminal() if columns else io.StringIO()
    stderr = io.StringIO()
    variables = {"COLUMNS": str(columns)} if columns else {}
    with (
        # Options such as --store set variables, which the next call must not see.
        mock.patch.dict(os.environ, variables),
        mock.patch.object(sys, "argv", ["steptime", *arguments]),
        redirect_stdout(stdout),
        redirect_stderr(stderr),
    ):
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0
    return Result(code, stdout.getvalue(), stderr.getvalue())
