"""The file that an imported result was read from: a download, never shown by the browser."""

from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import quote

from fastapi import FastAPI, HTTPException, Response

from steptime.core.foreign import ForeignRun
from steptime.web.context import PageContext

PATH = "/run/{run}/original"
TITLE = "Original file"
ORDER = None


def add(server: FastAPI, context: PageContext) -> None:
    @server.get(PATH)
    def original_file(run: str) -> Response:
        """The file that an imported result was read from."""
        foreign = context.workspace.find_run(run)
        data = None
        if isinstance(foreign, ForeignRun):
            data = context.workspace.store.blob(foreign.original)
        if not isinstance(foreign, ForeignRun) or data is None:
            raise HTTPException(404, f"This store has no original file of the run {run!r}.")
        name = quote(PurePosixPath(foreign.file).name, safe="")
        # A download: the browser must never show or run what others wrote.
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
        return Response(data, media_type="application/octet-stream", headers=headers)
