"""Synchronise ranks between blocks: plain sockets from every rank to rank 0.

Knows no framework and no measurement. A framework's own collectives cannot do this: ranks
decide here when to run them, and some cases exchange nothing."""

from __future__ import annotations

import json
import socket
import struct
import time
from pathlib import Path
from typing import Any, NamedTuple

from steptime.core.ranks import Ranks
from steptime.engine.clock import Clock

# The framework listens at the port itself, the rendezvous at the next one.
PORT_OFFSET = 1
# Nodes of a cluster start one after the other.
MEET_SECONDS = 120.0
RETRY_SECONDS = 0.05
PINGS = 64
MOST_RECEIVED = 1 << 20  # bytes of one recv call
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
LENGTH = struct.Struct("!Q")
# Sockets stay open until the process ends, so that a failing rank can record its cause before
# the others lose the connection.
_open_sockets: list[socket.socket] = []


class RankLost(Exception):
    """A rank has exited, or has not answered for too long."""


class Offset(NamedTuple):
    """What to add to a rank's clock to get rank 0's."""

    ns: int = 0
    error_ns: int = 0  # half of the quickest round trip


class Rendezvous:
    """Every rank calls the same methods in the same order."""

    def __init__(
        self,
        ranks: Ranks,
        secret: str,
        *,
        patience_seconds: float,
        clock: Clock = time.perf_counter_ns,
    ) -> None:
        """`secret`: known to the ranks of one job only. Other processes may use the same port."""
        self.ranks = ranks
        self._clock = clock
        if ranks.rank == 0:
            self._peers = _accept_ranks(ranks, secret)
        else:
            self._peers = [_connect(ranks, secret)]
        for peer in self._peers:
            peer.settimeout(patience_seconds)
        _open_sockets.extend(self._peers)
        self._boot_ids = self.gather(_boot_id())

    def gather(self, value: Any) -> list[Any]:
        """Every rank's value in rank order, on rank 0; an empty list elsewhere."""
        if self.ranks.rank > 0:
            _send(self._peers[0], value, "rank 0")
            return []
        values = [value]
        for rank, peer in enumerate(self._peers, 1):
            values.append(_receive(peer, f"rank {rank}"))
        return values

    def broadcast(self, value: Any) -> Any:
        """Rank 0's value, on every rank. Returns after all ranks have called it."""
        self.gather(None)
        if self.ranks.rank > 0:
            return _receive(self._peers[0], "rank 0")
        for rank, peer in enumerate(self._peers, 1):
            _send(peer, value, f"rank {rank}")
        return value

    def barrier(self) -> None:
        """Return after all ranks have called it."""
        self.broadcast(None)

    def measure_offsets(self) -> list[Offset]:
        """Every rank's clock offset, on rank 0; an empty list elsewhere.

        Ranks of one host share one clock, so their offset is 0."""
        self.barrier()
        if self.ranks.rank > 0:
            for _ in range(PINGS):
                _receive(self._peers[0], "rank 0")
                _send(self._peers[0], self._clock(), "rank 0")
            return []
        offsets = [Offset()]
        for rank, peer in enumerate(self._peers, 1):
            offset = self._measure_offset(peer, f"rank {rank}")
            same_host = self._boot_ids[rank] == self._boot_ids[0]
            offsets.append(Offset() if same_host else offset)
        return offsets

    def close(self) -> None:
        for peer in self._peers:
            peer.close()

    def _measure_offset(self, peer: socket.socket, name: str) -> Offset:
        """From the quickest answer, which was delayed least. Its error is half its round trip."""
        trips = []
        for _ in range(PINGS):
            sent_ns = self._clock()
            _send(peer, None, name)
            peer_ns = _receive(peer, name)
            trips.append((self._clock() - sent_ns, sent_ns - peer_ns))
        trip_ns, difference_ns = min(trips)
        return Offset(difference_ns + trip_ns // 2, -(-trip_ns // 2))


def _accept_ranks(ranks: Ranks, secret: str) -> list[socket.socket]:
    """The connections of the other ranks, in rank order."""
    peers: dict[int, socket.socket] = {}
    until = time.monotonic() + MEET_SECONDS
    # If all ranks run on one host, no other host can reach the port.
    is_local = ranks.address == Ranks.address
    host = ranks.address if is_local else ""
    address = (host, ranks.port + PORT_OFFSET)
    with socket.create_server(address, backlog=ranks.size) as server:
        while len(peers) < ranks.size - 1:
            missing = [rank for rank in range(1, ranks.size) if rank not in peers]
            server.settimeout(max(0.001, until - time.monotonic()))
            try:
                peer, _ = server.accept()
            except TimeoutError:
                raise RankLost(
                    f"Ranks {missing} did not connect to {ranks.address} in {MEET_SECONDS:g} s."
                ) from None
            _configure(peer)
            rank = _read_greeting(peer, secret)
            if rank in missing:
                peers[rank] = peer
            else:
                peer.close()
    return [peers[rank] for rank in sorted(peers)]


def _read_greeting(peer: socket.socket, secret: str) -> int:
    """The peer's rank, or -1 if it does not belong to this job."""
    try:
        greeting = _receive(peer, "a rank")
        return int(greeting["rank"]) if greeting["secret"] == secret else -1
    except (RankLost, ValueError, TypeError, KeyError):
        return -1


def _connect(ranks: Ranks, secret: str) -> socket.socket:
    until = time.monotonic() + MEET_SECONDS
    address = (ranks.address, ranks.port + PORT_OFFSET)
    while True:
        try:
            peer = socket.create_connection(address, timeout=MEET_SECONDS)
            break
        except OSError as problem:
            # Rank 0 may not listen yet.
            if time.monotonic() > until:
                raise RankLost(
                    f"Rank 0 does not listen at {address[0]}, port {address[1]}: {problem}."
                ) from None
            time.sleep(RETRY_SECONDS)
    _configure(peer)
    _send(peer, {"rank": ranks.rank, "secret": secret}, "rank 0")
    return peer


def _configure(peer: socket.socket) -> None:
    peer.settimeout(MEET_SECONDS)
    # Messages are short and the receiver waits for each, so none may be held back.
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _send(peer: socket.socket, value: Any, name: str) -> None:
    text = json.dumps(value).encode()
    try:
        peer.sendall(LENGTH.pack(len(text)) + text)
    except OSError as problem:
        raise RankLost(f"{name} is gone: {problem}.") from None


def _receive(peer: socket.socket, name: str) -> Any:
    (length,) = LENGTH.unpack(_receive_bytes(peer, LENGTH.size, name))
    return json.loads(_receive_bytes(peer, length, name))


def _receive_bytes(peer: socket.socket, count: int, name: str) -> bytes:
    content = bytearray()
    while len(content) < count:
        try:
            chunk = peer.recv(min(count - len(content), MOST_RECEIVED))
        except TimeoutError:
            raise RankLost(f"{name} has not answered for {peer.gettimeout():g} s.") from None
        except OSError as problem:
            raise RankLost(f"{name} is gone: {problem}.") from None
        if not chunk:
            raise RankLost(f"{name} closed the connection.")
        content += chunk
    return bytes(content)


def _boot_id() -> str:
    """Equal on all ranks of one host, and different on every other host."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return socket.gethostname()
