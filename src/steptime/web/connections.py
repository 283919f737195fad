"""HTTP connections of the guide. Those that send no whole request are closed, so that they cannot
use up the files that a process may open."""

from __future__ import annotations

import asyncio
import resource
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

# To send a whole request, also over a slow line.
REQUEST_SECONDS = 30.0
MOST_WAITING = 500
# Of the files that the process may open; the others are the store's.
SHARE_OF_FILES = 1 / 4
# Connections that are accepted at once, before the first of them can be closed again.
BACKLOG = 64

# Connections without a whole request, the oldest first.
_waiting: dict[BoundedConnection, None] = {}


def most_waiting() -> int:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return MOST_WAITING
    return min(MOST_WAITING, int(SHARE_OF_FILES * files))


class BoundedConnection(H11Protocol):  # type: ignore[misc]
    """Has a time limit for each request, and gives way to newer connections while it waits."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._start_waiting()
        while len(_waiting) > most_waiting():
            next(iter(_waiting)).close_waiting()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        is_incomplete = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        if not is_incomplete:
            self._stop_waiting()
        elif self._timer is None:
            self._start_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def close_waiting(self) -> None:
        self._stop_waiting()
        self.transport.close()

    def _start_waiting(self) -> None:
        _waiting[self] = None
        self._timer = self.loop.call_later(REQUEST_SECONDS, self.close_waiting)

    def _stop_waiting(self) -> None:
        _waiting.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
