"""The Performance Guide as a web page and an API: the same questions, answered by the same index."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles

from steptime import __version__
from steptime.core.errors import SteptimeError
from steptime.guide.desk import Desk
from steptime.guide.pages import compare, explore, history, machines, runs
from steptime.guide.source import Source

STATIC = Path(__file__).parent / "static"
# Nothing from elsewhere, no inline script: imported text can be shown, never executed. Vega sets styles of elements.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)


def app(source: Source) -> FastAPI:
    server = FastAPI(title="steptime", version=__version__, docs_url=None, redoc_url=None, openapi_url="/openapi.json")
    server.mount("/static", StaticFiles(directory=STATIC), name="static")
    server.middleware("http")(guarded)
    server.add_exception_handler(SteptimeError, refused)
    desk = Desk(source)
    for page in (explore, runs, compare, history, machines):
        page.add(server, desk)
    return server


async def guarded(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
    response = await answer(request)
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "no-referrer"
    return response


async def refused(request: Request, problem: Exception) -> Response:
    """A word that nothing answers to: 422 with the sentence that names the known ones."""
    return JSONResponse({"detail": str(problem)}, status_code=422)
