"""`steptime guide`: the Performance Guide in a browser."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steptime.cli.output import say
from steptime.core.errors import NotInstalled, SteptimeError

if TYPE_CHECKING:
    from socket import socket

    from steptime.store.readable import ReadableStore

TERMINATED = 128 + signal.SIGTERM


def guide_command(
    host: Annotated[
        str, typer.Option(help="Where to listen. Any other than this machine needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0: any free one.", min=0, max=65535)] = 8765,
    token: Annotated[
        str,
        typer.Option(
            envvar="STEPTIME_TOKEN", help="What every request must show; lets others send runs."
        ),
    ] = "",
) -> None:
    """Shows stored results as a page: explore, runs, compare, history."""
    try:
        import uvicorn

        from steptime.web.server import make_app
    except ImportError:
        raise NotInstalled(
            "This command needs the guide extra: pip install 'steptime[guide]'"
        ) from None
    from steptime.cli.request import open_workspace
    from steptime.web.access import Access

    access, listening = Access(host, token), _listen(host, port)
    workspace = open_workspace()
    address = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"
    once = ", the first time with ?token=TOKEN" if token else ""
    say(
        f"{workspace.index.count():,} results of {workspace.store.path}: {address}{once} (Ctrl-C ends it)"
    )
    sys.stdout.flush()  # a pipe would hold it until the end
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(TERMINATED)
    )  # so that it tidies up after itself
    try:
        pages = make_app(workspace, access, _campaigns(workspace.store))
        uvicorn.Server(uvicorn.Config(pages, log_level="warning")).run(sockets=[listening])
    finally:
        workspace.close()


def _campaigns(store: ReadableStore) -> Callable[[], list[dict[str, Any]]]:
    """Only a folder has some."""
    from steptime.run.slurm.overview import Overview
    from steptime.store.folder import FolderStore

    return Overview(store) if isinstance(store, FolderStore) else list


def _listen(host: str, port: int) -> socket:
    """Before the store is read: whoever cannot listen is told at once."""
    from socket import SOCK_STREAM, create_server, getaddrinfo

    try:
        family = getaddrinfo(host, port, type=SOCK_STREAM)[0][0]
        return create_server((host, port), family=family)
    except OSError as problem:
        number = problem.errno or 0
        why = (
            os.strerror(number) if number > 0 else problem.strerror
        )  # names that nobody knows have their own numbers
        advice = f"Choose another with --{'port' if number in (errno.EADDRINUSE, errno.EACCES) else 'host'}."
        raise SteptimeError(f"Nothing can listen on {host}, port {port}: {why}. {advice}") from None
