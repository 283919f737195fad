"""The file that an imported result was read from, as it was: handed over to be kept, never to be shown by a browser."""

from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import quote

from fastapi import FastAPI, HTTPException, Response

from steptime.core.foreign import ForeignRun
from steptime.web.context import Desk


def add(server: FastAPI, desk: Desk) -> None:
    @server.get("/run/{run}/original")
    def original(run: str) -> Response:
        """The file that an imported result was read from."""
        found = desk.found(run)
        data = desk.source.store.blob(found.original) if isinstance(found, ForeignRun) else None
        if not isinstance(found, ForeignRun) or data is None:
            raise HTTPException(404, f"No original belongs to the run {run!r} in this store.")
        name = quote(PurePosixPath(found.file).name, safe="")
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
        return Response(data, media_type="application/octet-stream", headers=headers)
