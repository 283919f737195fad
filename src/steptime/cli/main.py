"""The command `steptime`: puts the commands together and turns errors into sentences and exit codes."""

from __future__ import annotations

import errno
import functools
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Annotated, Any

import typer

from steptime import __version__
from steptime.cli import output
from steptime.cli.commands.cancel import cancel_command
from steptime.cli.commands.certify import certify_command
from steptime.cli.commands.chart import chart_command
from steptime.cli.commands.collect import collect_command
from steptime.cli.commands.compare import compare_command
from steptime.cli.commands.export import export_command
from steptime.cli.commands.guide import guide_command
from steptime.cli.commands.import_ import import_command
from steptime.cli.commands.list import list_command
from steptime.cli.commands.machine import machine_command
from steptime.cli.commands.profile import profile_command
from steptime.cli.commands.report import report_command
from steptime.cli.commands.run import run_command
from steptime.cli.commands.scaling import scaling_command
from steptime.cli.commands.show import show_command
from steptime.cli.commands.status import status_command
from steptime.cli.commands.store import COMMANDS as STORE_COMMANDS
from steptime.cli.commands.submit import submit_command
from steptime.cli.commands.train import train_command
from steptime.core.errors import SteptimeError

WRONG_USAGE, INTERRUPTED = 2, 130
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
AFTER_INTERRUPT = dict.fromkeys(
    ("run", "compare", "scaling"),
    "interrupted: what was measured is kept; the same command continues.",
)
AFTER_INTERRUPT |= dict.fromkeys(("status", "collect"), "interrupted: the campaign itself goes on.")
AFTER_INTERRUPT["train"] = "interrupted: no weights were written."
EXIT_CODES = """Exit codes: 0 fine, 1 a mistake in what was asked, 2 wrong usage, 3 every case failed,
4 some cases failed, 5 comparison refused, 130 interrupted (Ctrl-C or SIGTERM)."""

# Rich makes help pretty and doubles the time to show it.
app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help=f"Measures deep learning: how fast a network trains and infers here, and how sure we are.\n\n{EXIT_CODES}",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"steptime {__version__}")
        raise typer.Exit()


@app.callback()
def everywhere(
    store: Annotated[
        str,
        typer.Option(
            help="Folder of the results, or postgresql://… to read. Default: $STEPTIME_STORE, ./results."
        ),
    ] = "",
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    if store:
        os.environ["STEPTIME_STORE"] = store


def spoken(command: Callable[..., None], interrupted: str = "interrupted.") -> Callable[..., None]:
    """The command with its errors as sentences: a user's mistake never shows a traceback."""

    @functools.wraps(command)
    def speaking(**arguments: Any) -> None:
        try:
            try:
                command(**arguments)
            finally:
                sys.stdout.flush()
        except SteptimeError as problem:
            output.warn(f"error: {problem}")
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            typer.echo(interrupted, err=True)
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            _drop_output()  # the reader has seen enough
            raise typer.Exit() from None

    return speaking


def _drop_output() -> None:
    """What is still in the buffer would fail once more when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


COMMANDS: dict[str, Callable[..., None]] = {
    "run": run_command,
    "list": list_command,
    "show": show_command,
    "compare": compare_command,
    "scaling": scaling_command,
    "machine": machine_command,
    "profile": profile_command,
    "certify": certify_command,
    "chart": chart_command,
    "report": report_command,
    "export": export_command,
    "train": train_command,
    "import": import_command,
    "guide": guide_command,
    "submit": submit_command,
    "status": status_command,
    "collect": collect_command,
    "cancel": cancel_command,
}
for name, function in COMMANDS.items():
    app.command(name)(spoken(function, AFTER_INTERRUPT.get(name, "interrupted.")))
store_app = typer.Typer(
    rich_markup_mode=None, no_args_is_help=True, help="Checks, compacts, sends and merges stores."
)
for name, function in STORE_COMMANDS.items():
    store_app.command(name)(spoken(function))
app.add_typer(store_app, name="store")


def empty_words(words: Sequence[str]) -> list[str]:
    """What was given without a value: an unset variable of a shell, which must not mean "as usual"."""
    pairs = [(before, *word.partition("=")) for before, word in pairwise(["", *words])]
    alone = [
        before if before.startswith("-") else "An argument"
        for before, word, *_ in pairs
        if not word.strip()
    ]
    return alone + [
        word
        for _, word, equals, value in pairs
        if word[:2] == "--" and equals and not value.strip()
    ]


def _open_streams() -> None:
    """Python has none where the shell closed it (`>&-`)."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=output.PLAIN)


def main() -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a scheduler's Ctrl-C
    _open_streams()
    for name in empty_words(sys.argv[1:]):
        output.warn(f"error: {name} is empty: give it a value, or leave it out.")
        sys.exit(WRONG_USAGE)
    try:
        app(prog_name="steptime")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except OSError as problem:
        if problem.errno not in FULL:
            raise
        _drop_output()
        typer.echo(
            f"error: {problem.filename or 'The output'} cannot be written: {problem.strerror}.",
            err=True,
        )
        sys.exit(1)
