"""How ranks agree between blocks: a star of plain sockets around rank 0. Knows no framework and no measurement.

A framework's own collectives cannot serve: what is agreed on is when to run them, and some cases exchange nothing."""

from __future__ import annotations

import json
import socket
import struct
import time
from pathlib import Path
from typing import Any, NamedTuple

from steptime.core.ranks import Ranks
from steptime.engine.clock import Clock

BEHIND = 1  # the framework meets at the port itself, the rendezvous at the next one
MEET_SECONDS = 120.0  # nodes of a cluster start one after the other
RETRY_SECONDS = 0.05
PINGS = 64
BOOT = Path("/proc/sys/kernel/random/boot_id")
LENGTH = struct.Struct("!Q")
_kept: list[
    socket.socket
] = []  # open until the process ends: a rank that fails says why before the others miss it


class Parted(Exception):
    """A rank has gone, or has not answered for too long."""


class Offset(NamedTuple):
    """What is added to a rank's clock to have rank 0's."""

    ns: int = 0
    error_ns: int = 0  # half of the quickest round trip


class Rendezvous:
    """Every rank calls the same functions in the same order."""

    def __init__(
        self,
        ranks: Ranks,
        secret: str,
        *,
        patience_seconds: float,
        clock: Clock = time.perf_counter_ns,
    ) -> None:
        """`secret` is known to the ranks of one job alone: others may knock at the same port."""
        self.ranks, self._clock = ranks, clock
        self._peers = _accepted(ranks, secret) if ranks.rank == 0 else [_connected(ranks, secret)]
        for peer in self._peers:
            peer.settimeout(patience_seconds)
        _kept.extend(self._peers)
        self._boots = self.gather(_boot())

    def gather(self, value: Any) -> list[Any]:
        """Everybody's value, by rank, on rank 0; elsewhere nothing."""
        if self.ranks.rank:
            _send(self._peers[0], value, "rank 0")
            return []
        return [
            value,
            *(_receive(peer, f"rank {rank}") for rank, peer in enumerate(self._peers, 1)),
        ]

    def agree(self, value: Any) -> Any:
        """Rank 0's value, on every rank, when all have asked for it."""
        self.gather(None)
        if self.ranks.rank:
            return _receive(self._peers[0], "rank 0")
        for rank, peer in enumerate(self._peers, 1):
            _send(peer, value, f"rank {rank}")
        return value

    def offsets(self) -> list[Offset]:
        """Of every rank's clock, on rank 0; elsewhere nothing. The ranks of one host have one clock."""
        self.agree(None)
        if self.ranks.rank:
            for _ in range(PINGS):
                _receive(self._peers[0], "rank 0")
                _send(self._peers[0], self._clock(), "rank 0")
            return []
        measured = [self._offset(peer, f"rank {rank}") for rank, peer in enumerate(self._peers, 1)]
        here = (boot == self._boots[0] for boot in self._boots[1:])
        return [
            Offset(),
            *(Offset() if same else far for same, far in zip(here, measured, strict=True)),
        ]

    def close(self) -> None:
        for peer in self._peers:
            peer.close()

    def _offset(self, peer: socket.socket, who: str) -> Offset:
        """The quickest answer was held up least: half of its round trip is the most that it can be wrong by."""
        trips = []
        for _ in range(PINGS):
            asked = self._clock()
            _send(peer, None, who)
            theirs = _receive(peer, who)
            trips.append((self._clock() - asked, asked - theirs))
        trip_ns, difference_ns = min(trips)
        return Offset(difference_ns + trip_ns // 2, -(-trip_ns // 2))


def _accepted(ranks: Ranks, secret: str) -> list[socket.socket]:
    """The other ranks' connections, in their order."""
    peers: dict[int, socket.socket] = {}
    until = time.monotonic() + MEET_SECONDS
    place = (
        ranks.address if ranks.address == Ranks.address else ""
    )  # ranks of one host are nobody else's business
    with socket.create_server((place, ranks.port + BEHIND), backlog=ranks.size) as server:
        while len(peers) < ranks.size - 1:
            missing = [rank for rank in range(1, ranks.size) if rank not in peers]
            server.settimeout(max(0.001, until - time.monotonic()))
            try:
                peer, _ = server.accept()
            except TimeoutError:
                raise Parted(
                    f"Ranks {missing} did not come to {ranks.address} in {MEET_SECONDS:g} s."
                ) from None
            _ready(peer)
            rank = _greeting(peer, secret)
            if rank in missing:
                peers[rank] = peer
            else:
                peer.close()
    return [peers[rank] for rank in sorted(peers)]


def _greeting(peer: socket.socket, secret: str) -> int:
    """Its rank, or -1: somebody else."""
    try:
        hello = _receive(peer, "a rank")
        return int(hello["rank"]) if hello["secret"] == secret else -1
    except (Parted, ValueError, TypeError, KeyError):
        return -1


def _connected(ranks: Ranks, secret: str) -> socket.socket:
    until, place = time.monotonic() + MEET_SECONDS, (ranks.address, ranks.port + BEHIND)
    while True:
        try:
            peer = socket.create_connection(place, timeout=MEET_SECONDS)
            break
        except OSError as problem:  # rank 0 may not be there yet
            if time.monotonic() > until:
                raise Parted(f"Rank 0 is not at {place[0]}, port {place[1]}: {problem}.") from None
            time.sleep(RETRY_SECONDS)
    _ready(peer)
    _send(peer, {"rank": ranks.rank, "secret": secret}, "rank 0")
    return peer


def _ready(peer: socket.socket) -> None:
    peer.settimeout(MEET_SECONDS)
    peer.setsockopt(
        socket.IPPROTO_TCP, socket.TCP_NODELAY, 1
    )  # words are short, and somebody waits for each


def _send(peer: socket.socket, value: Any, who: str) -> None:
    text = json.dumps(value).encode()
    try:
        peer.sendall(LENGTH.pack(len(text)) + text)
    except OSError as problem:
        raise Parted(f"{who} is gone: {problem}.") from None


def _receive(peer: socket.socket, who: str) -> Any:
    (length,) = LENGTH.unpack(_bytes(peer, LENGTH.size, who))
    return json.loads(_bytes(peer, length, who))


def _bytes(peer: socket.socket, count: int, who: str) -> bytes:
    found = bytearray()
    while len(found) < count:
        try:
            piece = peer.recv(min(count - len(found), 1 << 20))
        except TimeoutError:
            raise Parted(f"{who} has not answered for {peer.gettimeout():g} s.") from None
        except OSError as problem:
            raise Parted(f"{who} is gone: {problem}.") from None
        if not piece:
            raise Parted(f"{who} has gone without a word.")
        found += piece
    return bytes(found)


def _boot() -> str:
    """The same on every rank of one host, and nowhere else."""
    try:
        return BOOT.read_text().strip()
    except OSError:
        return socket.gethostname()
