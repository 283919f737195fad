"""What every page of the guide needs: the workspace, the templates, and the query of a request."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from steptime.core.format import byte_count, duration, rough_duration, with_prefix
from steptime.index.query import Query, describe_condition, from_url
from steptime.index.workspace import Workspace
from steptime.report.html import make_environment
from steptime.web.access import Access

TEMPLATES = Path(__file__).parent / "templates"
Campaigns = Callable[[], list[dict[str, Any]]]


class Page(Protocol):
    """A module in web/pages: its routes, and its entry in the navigation."""

    PATH: str
    TITLE: str
    # The position in the navigation. None: other pages link to it, the navigation does not.
    ORDER: int | None

    def add(self, server: FastAPI, context: PageContext) -> None:
        """Adds the routes of the page."""


class PageContext:
    def __init__(
        self,
        workspace: Workspace,
        access: Access,
        campaigns: Campaigns,
        pages: Sequence[Page] = (),
    ) -> None:
        self.workspace = workspace
        self.access = access
        # Returns how far campaigns are. The guide itself queries no cluster.
        self.campaigns = campaigns
        self._templates = make_environment(TEMPLATES)
        self._templates.filters |= {
            "scaled": format_rate,
            "inline_json": inline_json,
            "duration": duration,
            "bytes": byte_count,
            "clock": rough_duration,
        }
        # The pages come in the order of the navigation.
        shown = (page for page in pages if page.ORDER is not None)
        self._templates.globals |= {
            "quote": quote,
            "describe_condition": describe_condition,
            "navigation": [(page.PATH, page.TITLE) for page in shown],
        }

    def page(self, template: str, *, current: str, **values: Any) -> HTMLResponse:
        """A page with the notes on the store that stand on every page.

        `current`: the path that the navigation marks."""
        # Before the notes are read: a refresh may add some.
        self.workspace.refresh()
        return self.render(template, current=current, **self.store_notes, **values)

    @property
    def store_notes(self) -> dict[str, Any]:
        """What is wrong with the store. It names files, so it is only for authorised readers."""
        return {
            "trouble": self.workspace.trouble,
            "problems": list(dict.fromkeys(self.workspace.store.problems)),
        }

    def render(self, template: str, **values: Any) -> HTMLResponse:
        return HTMLResponse(self._templates.get_template(template).render(**values))


def read_query(request: Request, *ignored: str) -> Query:
    """The query of a request. Empty fields of the form are no filters.

    `ignored`: parameters of the page that are not part of the query."""
    pairs = []
    for key, value in request.query_params.multi_items():
        if value and key not in ignored:
            pairs.append(f"{quote(key)}={quote(value)}")
    return from_url("&".join(pairs))


def format_rate(value: Any, unit: str) -> str:
    """A dash if nothing was measured."""
    return with_prefix(value, unit) if isinstance(value, int | float) else "–"


def inline_json(value: Any) -> str:
    """JSON for a script element: no text in it can end the element."""
    return Markup(json.dumps(value).replace("<", "\\u003c").replace("&", "\\u0026"))
