"""The Performance Guide as web pages and an API: the same queries, answered by the same index."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from steptime import __version__, plugins
from steptime.core.errors import SteptimeError, UnknownName
from steptime.index.catalogue import DIMENSIONS, METRICS
from steptime.index.workspace import Workspace
from steptime.store.atomic import NotWritten
from steptime.store.folder import StoreGone
from steptime.web import policy
from steptime.web.access import COOKIE, Access, url_without_token
from steptime.web.context import Campaigns, Page, PageContext

PAGES = "web.pages"
STATIC = Path(__file__).parent / "static"
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
# Why the store could not be read, in responses that are not pages.
TROUBLE = "X-Steptime-Trouble"
Respond = Callable[[Request], Awaitable[Response]]
ErrorHandler = Callable[[Request, Exception], Awaitable[Response]]


def make_app(
    workspace: Workspace, access: Access | None = None, campaigns: Campaigns = list
) -> FastAPI:
    """`campaigns`: returns how far campaigns are."""
    # The built-in documentation pages load scripts from elsewhere; /reference replaces them.
    server = FastAPI(
        title="steptime",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    server.mount("/static", StaticFiles(directory=STATIC), name="static")
    pages = load_pages()
    context = PageContext(workspace, access or Access(), campaigns, pages)
    server.middleware("http")(_make_guard(context))
    server.add_exception_handler(SteptimeError, _make_refusal(context))
    server.add_exception_handler(HTTPException, _make_not_found(context))
    for page in pages:
        page.add(server, context)
    return server


def load_pages() -> list[Page]:
    """Every page of the plugin folder: those of the navigation first, in its order."""
    pages = [cast(Page, plugins.load(PAGES, name)) for name in plugins.names(PAGES)]
    last = len(pages)
    pages.sort(key=lambda page: last if page.ORDER is None else page.ORDER)
    return pages


def _make_guard(context: PageContext) -> Callable[[Request, Respond], Awaitable[Response]]:
    """Checks access before every response, and adds the headers that all responses have."""
    access = context.access

    async def guard(request: Request, respond: Respond) -> Response:
        refused = access.refusal(request)
        if refused:
            response = make_problem(context, request, *refused)
        elif access.is_token(request.query_params.get("token", "")):
            # From now on the cookie stands for the token, which leaves the address bar.
            response = RedirectResponse(url_without_token(request), 303)
            response.set_cookie(COOKIE, access.token, httponly=True, samesite="strict")
        else:
            response = await respond(request)
            response.headers.update(_trouble_header(context))
        response.headers.update(HEADERS)
        # A page that needs another policy has set it already.
        response.headers.setdefault(policy.HEADER, policy.PAGE)
        return response

    return guard


def _trouble_header(context: PageContext) -> dict[str, str]:
    """For programs: a JSON answer has no room for the sentence that pages show."""
    sentence = " ".join(context.workspace.trouble.split())
    if not sentence:
        return {}
    return {TROUBLE: sentence.encode("ascii", "backslashreplace").decode()}


def _make_refusal(context: PageContext) -> ErrorHandler:
    async def refuse(request: Request, error: Exception) -> Response:
        """422 for a request that makes no sense, 503 for a store that refuses."""
        status = 503 if isinstance(error, NotWritten | StoreGone) else 422
        is_unknown = isinstance(error, UnknownName)
        return make_problem(context, request, status, str(error), list_names=is_unknown)

    return refuse


def _make_not_found(context: PageContext) -> ErrorHandler:
    async def not_found(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return make_problem(context, request, error.status_code, str(error.detail))

    return not_found


def make_problem(
    context: PageContext,
    request: Request,
    status: int,
    sentence: str,
    *,
    list_names: bool = False,
) -> Response:
    """A page for browsers, JSON for programs.

    `list_names`: with the known dimensions and metrics, after a name that is unknown."""
    names = {"dimensions": list(DIMENSIONS), "metrics": list(METRICS)} if list_names else {}
    # A browser asks for HTML; curl and programs do not.
    wants_html = "text/html" in request.headers.get("accept", "")
    if not wants_html or request.url.path.startswith("/api/"):
        content = {"detail": sentence, "known": names} if names else {"detail": sentence}
        return JSONResponse(content, status_code=status)
    # Notes name files of the store, which no client may see without access.
    notes = {} if status in (401, 403) else context.store_notes
    page = context.render(
        "problem.html", current="", status=status, sentence=sentence, names=names, **notes
    )
    page.status_code = status
    return page
