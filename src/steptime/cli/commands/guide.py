"""`steptime guide`: the Performance Guide in a browser."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steptime.cli import exit_codes
from steptime.cli.output import echo
from steptime.core.errors import SteptimeError

if TYPE_CHECKING:
    from socket import socket

    from steptime.index.workspace import Workspace
    from steptime.store.readable import ReadableStore

# Other errors, such as an unknown name, are about the host.
PORT_PROBLEMS = (errno.EADDRINUSE, errno.EACCES)


def guide_command(
    host: Annotated[
        str,
        typer.Option(
            metavar="HOST", help="Address to listen on. Other than this machine: needs --token."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="N", help="0: any free port.", min=0, max=65535)
    ] = 8765,
    token: Annotated[
        str,
        typer.Option(
            envvar="STEPTIME_TOKEN",
            metavar="TEXT",
            help="Every request must show it; allows remote uploads.",
        ),
    ] = "",
) -> None:
    """Serve the Performance Guide to a browser.

    Pages to explore stored results, look at runs, compare them and see their history."""
    from steptime.cli.request import guide_is_missing, open_workspace

    try:
        import uvicorn

        from steptime.web.connections import BACKLOG, BoundedConnection
        from steptime.web.server import make_app
    except ImportError:
        raise guide_is_missing() from None
    from steptime.web.access import Access

    access = Access(host, token)
    # Before the store is read: if the port is taken, say so at once.
    listener = _listen(host, port)
    workspace = open_workspace()
    _announce(workspace, host, listener.getsockname()[1], token)
    # Leave through `finally`, so that the index is closed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(exit_codes.TERMINATED))
    try:
        pages = make_app(workspace, access, _campaigns(workspace.store))
        config = uvicorn.Config(pages, http=BoundedConnection, backlog=BACKLOG, log_level="warning")
        uvicorn.Server(config).run(sockets=[listener])
    finally:
        workspace.close()


def _announce(workspace: Workspace, host: str, port: int, token: str) -> None:
    # IPv6 addresses need brackets in a URL.
    name = f"[{host}]" if ":" in host else host
    address = f"http://{name}:{port}"
    once = ", the first time with ?token=TOKEN" if token else ""
    results = f"{workspace.index.count():,} results of {workspace.store.path}"
    echo(f"{results}: {address}{once} (Ctrl-C ends it)")
    # A pipe would hold the line back until the end.
    sys.stdout.flush()


def _campaigns(store: ReadableStore) -> Callable[[], list[dict[str, Any]]]:
    """Only a folder has campaigns."""
    from steptime.run.slurm.overview import Overview
    from steptime.store.folder import FolderStore

    return Overview(store) if isinstance(store, FolderStore) else list


def _listen(host: str, port: int) -> socket:
    from socket import SOCK_STREAM, create_server, getaddrinfo

    try:
        family = getaddrinfo(host, port, type=SOCK_STREAM)[0][0]
        return create_server((host, port), family=family)
    except OSError as problem:
        number = problem.errno or 0
        # Errors of name resolution have negative numbers that strerror does not know.
        reason = os.strerror(number) if number > 0 else problem.strerror
        option = "--port" if number in PORT_PROBLEMS else "--host"
        raise SteptimeError(
            f"Cannot listen on {host}, port {port}: {reason}. Choose another with {option}."
        ) from None
