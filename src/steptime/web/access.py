"""Who may ask: this machine alone, or whoever has the token."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from urllib.parse import urlencode

from fastapi import Request

from steptime.core.errors import SteptimeError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
COOKIE = "steptime_token"
LEAST_CHARACTERS = 16


@dataclass(frozen=True)
class Access:
    """Without a token the page is for this machine. With one every request needs it, wherever it comes from."""

    host: str = LOOPBACK[0]
    token: str = ""

    def __post_init__(self) -> None:
        if self.token and (
            len(self.token) < LEAST_CHARACTERS
            or not self.token.isascii()
            or not self.token.isalnum()
        ):
            raise SteptimeError(
                f"A token is {LEAST_CHARACTERS} letters and digits or more, such as `openssl rand -hex 16` makes."
            )
        if self.host not in LOOPBACK and not self.token:
            raise SteptimeError(
                f"Others could reach {self.host}: give a token with --token or $STEPTIME_TOKEN, or leave out --host."
            )

    def refusal(self, request: Request) -> tuple[int, str] | None:
        """Status and sentence; None: welcome."""
        if not self.token:
            # A name that somebody else's site made point here: a page of theirs would read the answers.
            name = request.url.hostname or ""
            return (
                None
                if name in LOOPBACK
                else (403, f"This page answers to {', '.join(LOOPBACK)}, not {name!r}.")
            )
        given = (
            _bearer(request),
            request.cookies.get(COOKIE, ""),
            request.query_params.get("token", ""),
        )
        if any(self.is_token(word) for word in given):
            return None
        return (
            401,
            "A token is needed: in the header `Authorization: Bearer TOKEN`, or once as ?token=TOKEN.",
        )

    def may_write(self, request: Request) -> tuple[int, str] | None:
        """A cookie is not enough: other sites' pages can make a browser send it."""
        if not self.token:
            return 403, "Runs are only taken by a guide with a token: steptime guide --token TOKEN."
        return (
            None
            if self.is_token(_bearer(request))
            else (401, "Send the token as `Authorization: Bearer TOKEN`.")
        )

    def is_token(self, word: str) -> bool:
        return bool(self.token) and secrets.compare_digest(
            word.encode(errors="replace"), self.token.encode()
        )


def _bearer(request: Request) -> str:
    kind, _, word = request.headers.get("authorization", "").partition(" ")
    return word.strip() if kind.lower() == "bearer" else ""


def without_token(request: Request) -> str:
    """The same address, fit to be shown and shared."""
    kept = [(key, value) for key, value in request.query_params.multi_items() if key != "token"]
    return request.url.path + (f"?{urlencode(kept)}" if kept else "")
