"""What every page needs: the source, the templates, and how a request becomes a query."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, select_autoescape
from markupsafe import Markup

from steptime import __version__
from steptime.analysis.result import result
from steptime.core.errors import SteptimeError
from steptime.core.foreign import ForeignRun
from steptime.core.format import byte_count, clock, duration, scaled
from steptime.core.record import Record
from steptime.index.catalogue import DIMENSIONS, METRICS
from steptime.index.index import Index
from steptime.index.query import Query, from_url, said
from steptime.index.rows import Row
from steptime.index.source import Source

TEMPLATES = Path(__file__).parent / "templates"


class Desk:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.templates = Environment(
            loader=FileSystemLoader(TEMPLATES),
            autoescape=select_autoescape(default=True),
            trim_blocks=True,
        )
        self.templates.filters |= {
            "number": number, "scaled": rate, "inline_json": inline_json, "duration": duration, "bytes": byte_count,
            "clock": clock,
        }  # fmt: skip
        self.templates.globals |= {
            "version": __version__, "dimensions": DIMENSIONS, "metrics": METRICS, "quote": quote, "said": said,
        }  # fmt: skip

    @property
    def index(self) -> Index:
        self.source.refresh()
        return self.source.index

    def found(self, run: str) -> Record | ForeignRun | None:
        self.source.refresh()
        return self.source.found(run)

    def row(self, word: str) -> Row:
        """Of the one run whose id is, begins or ends with this word."""
        rows = self.index.named(word)
        if len(rows) != 1:
            raise SteptimeError(
                f"{'No run has' if not rows else 'Several runs have'} the id {word!r}."
            )
        return rows[0]

    def own(self, record: Record) -> dict[str, Any]:
        outcome = (
            {"result": result(record).to_dict()}
            if record.measurements
            else {"failure": vars(record.failures[-1])}
        )
        return {
            "id": record.attempts[0].id,
            "case": record.case.to_dict(),
            "status": record.status,
            **outcome,
        }

    def page(self, template: str, **values: Any) -> HTMLResponse:
        self.source.refresh()
        return self.rendered(template, **self.troubles, **values)

    @property
    def troubles(self) -> dict[str, Any]:
        """Nothing for whoever may not ask: they name files."""
        return {
            "trouble": self.source.trouble,
            "problems": list(dict.fromkeys(self.source.store.problems)),
        }

    def rendered(self, template: str, **values: Any) -> HTMLResponse:
        return HTMLResponse(self.templates.get_template(template).render(**values))


def asked(request: Request, *but: str) -> Query:
    """Empty fields of the form are no filters; `but` are words of the page, not of the query."""
    kept = [
        (key, value)
        for key, value in request.query_params.multi_items()
        if value and key not in but
    ]
    return from_url("&".join(f"{quote(key)}={quote(value)}" for key, value in kept))


def number(value: Any) -> str:
    """Four digits that matter, with thousands told apart."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return "" if value is None else str(value)
    return f"{value:,.0f}" if abs(value) >= 9_999.5 else f"{value:.4g}"


def rate(value: Any, unit: str) -> str:
    """What was not measured has none."""
    return scaled(value, unit) if isinstance(value, int | float) else "–"


def inline_json(value: Any) -> str:
    """Inside a script element no text may end it."""
    return Markup(json.dumps(value).replace("<", "\\u003c").replace("&", "\\u0026"))
