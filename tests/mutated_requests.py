"""Requests to every address of the guide, with one thing or several that no link of it has."""

from __future__ import annotations

import random
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import FastAPI

from odd_inputs import ODD_TEXTS, Hang, time_limit
from steptime.index.catalogue import DIMENSIONS, METRICS
from steptime.index.query import CHOICES

METHODS = ("GET",) * 40 + ("HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "ODD")
# Addresses that OpenAPI does not describe.
OTHER_PATHS = ("/static/{run}", "/perfetto/{run}", "/openapi.json", "/{run}", "/run/{run}/x")
HEADERS = (
    "accept",
    "accept-encoding",
    "authorization",
    "content-length",
    "content-type",
    "cookie",
    "host",
    "if-modified-since",
    "if-none-match",
    "range",
    "x-forwarded-for",
)
PARAMETERS = ("y", "x", "by", "split", "rel", "since", "until", "s", "batch", *CHOICES)
PAGE_PARAMETERS = ("id", "a", "b", "show", "run", "limit", "after", "token")
HEADER_VALUES = (
    "text/html",
    "gzip",
    "identity",
    "bytes=0-",
    "bytes=-1",
    "bytes=9-1",
    "Bearer",
    "Bearer x",
    "steptime_token=x",
    "steptime_token",
    "Thu, 01 Jan 1970 00:00:00 GMT",
)


@dataclass(frozen=True)
class MutatedRequest:
    method: str
    url: str
    headers: dict[str, bytes] = field(default_factory=dict)
    body: bytes = b""


def addresses(app: FastAPI) -> list[str]:
    return [*app.openapi()["paths"], *OTHER_PATHS]


def mutate_request(
    paths: Sequence[str], runs: Sequence[str], rng: random.Random
) -> tuple[str, MutatedRequest]:
    """The address that was chosen, and a request to it. `runs`: ids that the store has."""
    address = path = rng.choice(paths)
    for name in ("{run}", "{kind}"):
        path = path.replace(name, _path_part(runs, rng))
    url = path
    if rng.random() < 0.9:
        pairs = [_parameter(runs, rng) for _ in range(rng.choice((1, 1, 2, 3, 6)))]
        url = f"{path}?{urlencode(pairs, errors='surrogateescape')}"
    if rng.random() < 0.05:
        url += rng.choice(("%", "%ff", "&&=", "#", "?", ";", "&x", "=%00"))
    headers = {}
    if rng.random() < 0.3:
        value = rng.choice((*HEADER_VALUES, *ODD_TEXTS)).encode(errors="surrogateescape")
        headers[rng.choice(HEADERS)] = value
    method = rng.choice(METHODS)
    body = rng.choice(ODD_TEXTS).encode(errors="surrogateescape") if method == "POST" else b""
    return address, MutatedRequest(method, url, headers, body)


def _path_part(runs: Sequence[str], rng: random.Random) -> str:
    known = (*runs, rng.choice(runs)[-8:], "svg", "png", "json", "csv", "guide.css", "../server.py")
    part = rng.choice(known if rng.random() < 0.5 else ODD_TEXTS)
    return quote(part.encode(errors="surrogateescape"), safe="" if rng.random() < 0.8 else "/.")


def _parameter(runs: Sequence[str], rng: random.Random) -> tuple[str, str]:
    names: Sequence[str] = rng.choice((PARAMETERS, PAGE_PARAMETERS, tuple(DIMENSIONS), ODD_TEXTS))
    name = rng.choice(names)
    values: Sequence[str] = ODD_TEXTS
    if rng.random() < 0.6:
        values = (*DIMENSIONS, *METRICS, *runs, *CHOICES.get(name, ()), "yes", "2026-01-01")
    value = rng.choice(values)
    if rng.random() < 0.2:
        operator = rng.choice((",", ":", "|", "=", "&", "..", "!", ">", "~"))
        value += operator + rng.choice((*ODD_TEXTS, *DIMENSIONS))
    return name, value


def find_server_error(guide: Any, request: Any) -> str:
    """What is wrong with the answer, whatever was asked; empty if nothing."""
    try:
        with time_limit():
            status = guide.send(request).status_code
    except Hang as hang:
        return str(hang)
    except Exception:
        return traceback.format_exc(limit=-3)
    # 503: the store cannot be read at the moment, and the answer says why.
    return "" if status < 500 or status == 503 else f"status {status}"
