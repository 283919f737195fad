"""`steptime guide`: the Performance Guide in a browser."""

from __future__ import annotations

import errno
import os
import socket
import sys
from typing import Annotated

import typer

from steptime.cli.output import say
from steptime.core.errors import NotInstalled, SteptimeError


def guide_command(
    host: Annotated[
        str, typer.Option(help="Where to listen. Any other than this machine needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0: any free one.", min=0, max=65535)] = 8765,
    token: Annotated[
        str, typer.Option(envvar="STEPTIME_TOKEN", help="What every request must show; lets others send runs.")
    ] = "",
) -> None:
    """Shows stored results as a page: explore, runs, compare, history."""
    try:
        import uvicorn

        from steptime.guide.server import app
    except ImportError as problem:
        raise NotInstalled(f"The guide needs more ({problem}): pip install 'steptime[guide]'") from None
    from steptime.cli.request import store_folder, warn_of_problems
    from steptime.guide.access import Access
    from steptime.guide.source import Source
    from steptime.store.folder import FolderStore

    access, source = Access(host, token), Source(FolderStore(store_folder()))
    listening = _listen(host, port)
    source.refresh()
    warn_of_problems(source.store)
    address = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"
    once = ", the first time with ?token=TOKEN" if token else ""
    say(f"{source.index.count():,} results of {source.store.path}: {address}{once} (Ctrl-C ends it)")
    sys.stdout.flush()  # a pipe would hold it until the end
    uvicorn.Server(uvicorn.Config(app(source, access), log_level="warning")).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    """Before the store is read: whoever can not listen is told at once."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as problem:
        number = problem.errno or 0
        why = os.strerror(number) if number > 0 else problem.strerror  # names that nobody knows have their own numbers
        advice = f"Choose another with --{'port' if number in (errno.EADDRINUSE, errno.EACCES) else 'host'}."
        raise SteptimeError(f"Nothing can listen on {host}, port {port}: {why}. {advice}") from None
