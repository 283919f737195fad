"""Who may read and write: this machine alone, or everyone with the token."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from urllib.parse import urlencode

from fastapi import Request

from steptime.core.errors import SteptimeError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
COOKIE = "steptime_token"
LEAST_CHARACTERS = 16
Refusal = tuple[int, str]  # a status and a sentence


@dataclass(frozen=True)
class Access:
    """Without a token the guide is for this machine. With one, every request needs it."""

    host: str = LOOPBACK[0]
    token: str = ""

    def __post_init__(self) -> None:
        is_plain = self.token.isascii() and self.token.isalnum()
        if self.token and not (is_plain and len(self.token) >= LEAST_CHARACTERS):
            raise SteptimeError(
                f"A token must have {LEAST_CHARACTERS} letters and digits or more; "
                "`openssl rand -hex 16` makes one."
            )
        if self.host not in LOOPBACK and not self.token:
            raise SteptimeError(
                f"Others could reach {self.host}: give a token with --token or $STEPTIME_TOKEN, "
                "or leave out --host."
            )

    def refusal(self, request: Request) -> Refusal | None:
        """Why this request gets no answer; None if it may have one."""
        if not self.token:
            return _refuse_other_names(request)
        # Programs send a header, browsers a cookie; the parameter is for the first visit.
        candidates = (
            _bearer(request),
            request.cookies.get(COOKIE, ""),
            request.query_params.get("token", ""),
        )
        if any(self.is_token(candidate) for candidate in candidates):
            return None
        return (
            401,
            "This guide needs a token: send the header `Authorization: Bearer TOKEN`, "
            "or open it once with ?token=TOKEN.",
        )

    def write_refusal(self, request: Request) -> Refusal | None:
        """A cookie is not enough: pages of other sites can make a browser send it."""
        if not self.token:
            return 403, "Only a guide with a token accepts runs: steptime guide --token TOKEN."
        if self.is_token(_bearer(request)):
            return None
        return 401, "Send the token as `Authorization: Bearer TOKEN`."

    def is_token(self, candidate: str) -> bool:
        if not self.token:
            return False
        # Takes the same time for every candidate, so that none can be guessed by timing.
        return secrets.compare_digest(candidate.encode(errors="replace"), self.token.encode())


def _refuse_other_names(request: Request) -> Refusal | None:
    """Refuses a host name that another site points at this machine, to read what it answers."""
    name = request.url.hostname or ""
    if name in LOOPBACK:
        return None
    return 403, f"This guide answers to {', '.join(LOOPBACK)}, not to {name!r}."


def _bearer(request: Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def url_without_token(request: Request) -> str:
    """The same URL, safe to be shown and shared."""
    pairs = [(key, value) for key, value in request.query_params.multi_items() if key != "token"]
    return f"{request.url.path}?{urlencode(pairs)}" if pairs else request.url.path
