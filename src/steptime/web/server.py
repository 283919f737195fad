"""The Performance Guide as a web page and an API: the same questions, answered by the same index."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from steptime import __version__
from steptime.core.errors import SteptimeError, UnknownWord
from steptime.index.catalogue import DIMENSIONS, METRICS
from steptime.index.source import Source
from steptime.report.report import SEAL
from steptime.store.atomic import NotWritten
from steptime.store.folder import StoreGone
from steptime.web.access import COOKIE, Access, without_token
from steptime.web.context import Desk
from steptime.web.pages import (
    campaigns,
    compare,
    explore,
    history,
    machines,
    original,
    receive,
    reference,
    report,
    runs,
    trace,
)

STATIC = Path(__file__).parent / "static"
# Nothing from elsewhere, no inline script: imported text can be shown, never executed. Vega sets styles of elements.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
# Perfetto's page styles itself, starts workers and compiles its trace processor. It may do so below its own address
# alone, may speak to nobody else either, and only a page of ours may frame it.
PERFETTO = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; worker-src 'self' blob:; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self' data: blob:; "
    "font-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
HEADERS = {
    "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}  # fmt: skip
TROUBLE = "X-Steptime-Trouble"
Answer = Callable[[Request], Awaitable[Response]]


def app(
    source: Source, access: Access | None = None, running: campaigns.Campaigns = list
) -> FastAPI:
    """`running`: who tells how far campaigns are."""
    server = FastAPI(
        title="steptime",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    server.mount("/static", StaticFiles(directory=STATIC), name="static")
    desk, access = Desk(source), access or Access()
    server.middleware("http")(_guard(desk, access))
    server.add_exception_handler(SteptimeError, _refusal(desk))
    server.add_exception_handler(HTTPException, _absence(desk))
    for page in (explore, runs, compare, history, machines, original, report, trace, reference):
        page.add(server, desk)
    campaigns.add(server, desk, running)
    receive.add(server, desk, access)
    return server


def _guard(desk: Desk, access: Access) -> Callable[[Request, Answer], Awaitable[Response]]:
    async def guarded(request: Request, answer: Answer) -> Response:
        refused = access.refusal(request)
        if refused:
            response = problem(desk, request, *refused)
        elif access.is_token(request.query_params.get("token", "")):
            response = RedirectResponse(without_token(request), 303)
            response.set_cookie(COOKIE, access.token, httponly=True, samesite="strict")
        else:
            response = await answer(request)
            response.headers.update(_trouble(desk))
        response.headers.update({**HEADERS, "Content-Security-Policy": policy(request.url.path)})
        return response

    return guarded


def _trouble(desk: Desk) -> dict[str, str]:
    """For programs, whose answers have no room for the sentence that stands on every page."""
    found = " ".join(desk.source.trouble.split())
    return {TROUBLE: found.encode("ascii", "backslashreplace").decode()} if found else {}


def policy(path: str) -> str:
    if path.startswith(f"{trace.PERFETTO}/"):
        return PERFETTO
    if path == report.ADDRESS:
        return POLICY.replace("style-src 'self'", f"style-src 'self' {SEAL}")
    frames = path.startswith("/run/") and path.endswith("/perfetto")
    return f"{POLICY}; frame-src 'self'" if frames else POLICY


def _refusal(desk: Desk) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def refused(request: Request, found: Exception) -> Response:
        """A word that nothing answers to: 422 with the sentence, and the known ones. A store that refuses: 503."""
        status = 503 if isinstance(found, NotWritten | StoreGone) else 422
        return problem(desk, request, status, str(found), known=isinstance(found, UnknownWord))

    return refused


def _absence(desk: Desk) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def absent(request: Request, found: Exception) -> Response:
        assert isinstance(found, HTTPException)
        return problem(desk, request, found.status_code, str(found.detail))

    return absent


def problem(
    desk: Desk, request: Request, status: int, sentence: str, *, known: bool = False
) -> Response:
    """In the page's frame for people, as JSON for programs."""
    words = {"dimensions": list(DIMENSIONS), "metrics": list(METRICS)} if known else {}
    if "text/html" in request.headers.get("accept", "") and not request.url.path.startswith(
        "/api/"
    ):
        troubles = {} if status in (401, 403) else desk.troubles
        page = desk.rendered(
            "problem.html", here="", status=status, sentence=sentence, known=words, **troubles
        )
        page.status_code = status
        return page
    return JSONResponse(
        {"detail": sentence, **({"known": words} if words else {})}, status_code=status
    )
