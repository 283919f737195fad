"""Connections of the guide that send no whole request."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

uvicorn = pytest.importorskip("uvicorn", reason="the guide is not installed")

from steptime.web import connections

REQUEST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n"


async def answer(scope: object, receive: object, send: object) -> None:
    await receive()  # type: ignore[operator]
    start = {"type": "http.response.start", "status": 200, "headers": []}
    await send(start)  # type: ignore[operator]
    await send({"type": "http.response.body", "body": b"yes"})  # type: ignore[operator]


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.5)
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        answer, http=connections.BoundedConnection, log_level="warning", lifespan="off"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield listener.getsockname()[1]
    server.should_exit = True
    thread.join()


@pytest.mark.parametrize("sent", [b"", b"GET / HT", REQUEST, REQUEST + b"a"])
def test_connection_without_whole_request_is_closed(port: int, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(sent)
        connection.settimeout(20)
        while connection.recv(4096):
            pass


def test_connection_with_whole_request_is_answered(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(REQUEST + b"ab")
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")


def test_second_request_has_a_time_limit_too(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        connection.sendall(b"GET / HT")
        while connection.recv(4096):
            pass


def test_newer_connections_take_the_place_of_those_that_wait(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 600.0)
    monkeypatch.setattr(connections, "MOST_WAITING", 3)
    waiting = [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(5)]
    assert waiting[0].recv(1) == b"" and waiting[1].recv(1) == b""
    waiting[4].sendall(REQUEST + b"ab")
    assert waiting[4].recv(4096).startswith(b"HTTP/1.1 200")
    for connection in waiting:
        connection.close()
