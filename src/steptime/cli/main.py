"""The command `steptime`: registers the commands and turns errors into sentences and exit codes."""

from __future__ import annotations

import errno
import functools
import io
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from steptime import __version__
from steptime.cli import exit_codes, output
from steptime.core.errors import SteptimeError

Command = Callable[..., None]
SUMMARY = (
    "Benchmark deep-learning training and inference across frameworks and hardware, "
    "with error bars you can defend."
)
# A full disk or quota, a file limit, a failing device: not a bug, so no traceback.
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
INTERRUPTED = "interrupted."
MEASURING_INTERRUPTED = "interrupted: results so far are stored; run the same command to continue."
CAMPAIGN_CONTINUES = "interrupted: the campaign itself continues."
AFTER_INTERRUPT = {
    "run": MEASURING_INTERRUPTED,
    "compare": MEASURING_INTERRUPTED,
    "scaling": MEASURING_INTERRUPTED,
    "status": CAMPAIGN_CONTINUES,
    "collect": CAMPAIGN_CONTINUES,
    "train": "interrupted: no weights were written.",
    "data": "interrupted: complete files are kept; run the same command to continue.",
}

# Every command once, in the order of `--help`.
GROUPS: Mapping[str, Sequence[str]] = {
    "Measure": ("run", "compare", "scaling", "profile", "certify", "train", "data", "machine"),
    "Look at results": ("list", "show", "chart", "report", "export", "guide"),
    "Cluster": ("submit", "status", "collect", "cancel"),
    "Store": ("import", "store"),
}
# Those that have commands of their own.
COMMAND_GROUPS = ("data", "store")


class GroupedHelp(TyperGroup):
    """Lists the commands by group.

    Typer's own headings need Rich markup, which doubles the time that help takes."""

    # Typer moved these two classes between releases, hence Any.
    def format_commands(self, ctx: Any, formatter: Any) -> None:
        longest = max(len(name) for name in self.commands)
        # Click indents by two and separates by two, with two to spare.
        limit = formatter.width - longest - 6
        for heading, names in GROUPS.items():
            rows = []
            for name in names:
                summary = self.commands[name].get_short_help_str(limit)
                # Padded, so that the summaries of all groups start in one column.
                rows.append((name.ljust(longest), summary))
            with formatter.section(heading):
                formatter.write_dl(rows)


# Rich markup makes help pretty and doubles the time to show it.
app = typer.Typer(
    cls=GroupedHelp,
    rich_markup_mode=None,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    help=f"{SUMMARY}\n\n{exit_codes.SUMMARY}",
)


def print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"steptime {__version__}")
        raise typer.Exit()


@app.callback()
def common_options(
    store: Annotated[
        str,
        typer.Option(
            metavar="PATH",
            help="Folder of the results, or postgresql://… to read from. "
            "Default: $STEPTIME_STORE, else ./results.",
        ),
    ] = "",
    version: Annotated[
        bool,
        typer.Option(
            "-V", "--version", callback=print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    # request.py reads the variable.
    if store:
        os.environ["STEPTIME_STORE"] = store


def report_errors(command: Command, interrupted: str = INTERRUPTED) -> Command:
    """Wrap a command so that a user's mistake is one sentence, never a traceback."""

    @functools.wraps(command)
    def run_reporting_errors(**arguments: Any) -> None:
        try:
            try:
                command(**arguments)
            finally:
                # Inside `try`, so that a full disk or a closed pipe is noticed here.
                sys.stdout.flush()
        # The only errors that a user can mend; any other exception is a bug.
        except SteptimeError as problem:
            output.warn(f"error: {problem}")
            raise typer.Exit(exit_codes.ERROR) from None
        except MemoryError:
            output.warn("error: Memory ran out (see `ulimit -v`). What was measured is stored.")
            raise typer.Exit(exit_codes.ERROR) from None
        except KeyboardInterrupt:
            typer.echo(interrupted, err=True)
            raise typer.Exit(exit_codes.INTERRUPTED) from None
        except BrokenPipeError:
            # The reader, for example `head`, has seen enough.
            _drop_output()
            raise typer.Exit() from None
        except OSError as problem:
            # A name that is too long, a broken disk, a path without permission. `main` explains
            # an output that cannot be written.
            if problem.errno in UNWRITABLE or not problem.filename:
                raise
            path = os.fsdecode(problem.filename)
            output.warn(f"error: {path} cannot be used: {problem.strerror}.")
            raise typer.Exit(exit_codes.ERROR) from None

    return run_reporting_errors


def _drop_output() -> None:
    """Flushing the rest of the buffer would fail again when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _load_command(name: str) -> Command:
    """The command `run` is `run_command` in commands/run.py."""
    # `import` is a keyword, so its file is import_.py.
    file_name = "import_" if name == "import" else name
    module = import_module(f"steptime.cli.commands.{file_name}")
    command: Command = getattr(module, f"{name}_command")
    return command


def _group_app(name: str) -> typer.Typer:
    """The commands `store check` and so on are in commands/store.py."""
    module = import_module(f"steptime.cli.commands.{name}")
    group = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help=module.SUMMARY)
    message = AFTER_INTERRUPT.get(name, INTERRUPTED)
    for command_name, command in module.COMMANDS.items():
        group.command(command_name)(report_errors(command, message))
    return group


def _register_commands() -> None:
    for names in GROUPS.values():
        for name in names:
            if name in COMMAND_GROUPS:
                app.add_typer(_group_app(name), name=name)
                continue
            # What survives an interrupt differs: say so where somebody may worry.
            message = AFTER_INTERRUPT.get(name, INTERRUPTED)
            app.command(name)(report_errors(_load_command(name), message))


_register_commands()


def empty_arguments(arguments: Sequence[str]) -> list[str]:
    """The flags without a value: an unset shell variable must not mean "use the default"."""
    empty = []
    for previous, argument in pairwise(["", *arguments]):
        name, equals, value = argument.partition("=")
        if not argument.strip():
            empty.append(previous if previous.startswith("-") else "An argument")
        elif name.startswith("--") and equals and not value.strip():
            empty.append(name)
    return empty


def _open_streams() -> None:
    """Replace the streams that the shell closed (`>&-`): Python sets them to None."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    # Tests and notebooks replace the streams by others.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=output.PLAIN)


def main() -> None:
    # A scheduler ends a job with SIGTERM: treat it like Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # So does a terminal that is closed, with SIGHUP, unless nohup makes the command ignore it.
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.default_int_handler)
    _open_streams()
    for name in empty_arguments(sys.argv[1:]):
        output.warn(f"error: {name} is empty: give it a value, or leave it out.")
        sys.exit(exit_codes.WRONG_USAGE)
    try:
        app(prog_name="steptime")
    except KeyboardInterrupt:
        sys.exit(exit_codes.INTERRUPTED)
    except OSError as problem:
        if problem.errno not in UNWRITABLE:
            raise
        _drop_output()
        path = problem.filename or "The output"
        typer.echo(f"error: {path} cannot be written: {problem.strerror}.", err=True)
        sys.exit(exit_codes.ERROR)
