"""`steptime guide`: the Performance Guide in a browser."""

from __future__ import annotations

from typing import Annotated

import typer

from steptime.cli.output import say
from steptime.core.errors import NotInstalled

LOOPBACK = "127.0.0.1"


def guide_command(
    port: Annotated[int, typer.Option(help="The page's port.")] = 8765,
) -> None:
    """Shows stored results as a page on this machine."""
    try:
        import uvicorn

        from steptime.guide.server import app
    except ImportError as problem:
        raise NotInstalled(f"The guide needs more ({problem}): pip install 'steptime[guide]'") from None
    from steptime.cli.request import store_folder, warn_of_problems
    from steptime.guide.source import Source
    from steptime.store.folder import FolderStore

    source = Source(FolderStore(store_folder()))
    source.refresh()
    warn_of_problems(source.store)
    say(f"{source.index.count():,} results of {source.store.path}: http://{LOOPBACK}:{port}  (Ctrl-C ends it)")
    uvicorn.run(app(source), host=LOOPBACK, port=port, log_level="warning")
