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

        from steptime.web.server import app
    except ImportError as problem:
        raise NotInstalled(
            f"The guide needs more ({problem}): pip install 'steptime[guide]'"
        ) from None
    from steptime.cli.request import opened_desk
    from steptime.web.access import Access

    access, listening = Access(host, token), _listen(host, port)
    source = opened_desk().source
    address = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"
    once = ", the first time with ?token=TOKEN" if token else ""
    say(
        f"{source.index.count():,} results of {source.store.path}: {address}{once} (Ctrl-C ends it)"
    )
    sys.stdout.flush()  # a pipe would hold it until the end
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(TERMINATED)
    )  # so that it tidies up after itself
    try:
        pages = app(source, access, _campaigns(source.store))
        uvicorn.Server(uvicorn.Config(pages, log_level="warning")).run(sockets=[listening])
    finally:
        source.close()


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
