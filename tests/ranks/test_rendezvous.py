from __future__ import annotations

import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from steptime.core.ranks import Ranks
from steptime.ranks import rendezvous as module
from steptime.ranks.launcher import find_free_port
from steptime.ranks.rendezvous import Offset, RankLost, Rendezvous


def meet(
    size: int,
    act: Callable[[Rendezvous], Any],
    secret: Callable[[int], str] = lambda rank: "secret",
) -> list[Any]:
    """What `act` returns on each rank, each in a thread of its own."""
    port = find_free_port()

    def one(rank: int) -> Any:
        rendezvous = Rendezvous(Ranks(rank, size, port=port), secret(rank), patience_seconds=5.0)
        try:
            return act(rendezvous)
        finally:
            rendezvous.close()

    with ThreadPoolExecutor(size) as pool:
        return [future.result() for future in [pool.submit(one, rank) for rank in range(size)]]


def test_broadcast_gives_rank_0_s_value_to_all() -> None:
    assert (
        meet(3, lambda rendezvous: rendezvous.broadcast({"steps": 10 + rendezvous.ranks.rank}))
        == [{"steps": 10}] * 3
    )


def test_gather_returns_values_in_rank_order() -> None:
    assert meet(3, lambda rendezvous: rendezvous.gather(rendezvous.ranks.rank**2)) == [
        [0, 1, 4],
        [],
        [],
    ]


def test_broadcast_keeps_every_digit() -> None:
    assert meet(2, lambda rendezvous: rendezvous.broadcast([0.1 + 0.2, 1 << 62]))[1] == [
        0.1 + 0.2,
        1 << 62,
    ]


def test_gather_transfers_long_values() -> None:
    samples = list(range(300_000))
    assert meet(2, lambda rendezvous: rendezvous.gather(samples))[0] == [samples, samples]


def test_measure_offsets_is_zero_on_one_host() -> None:
    assert meet(2, lambda rendezvous: rendezvous.measure_offsets())[0] == [
        Offset(0, 0),
        Offset(0, 0),
    ]


def test_measure_offsets_finds_another_host_s_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = iter("ab")
    monkeypatch.setattr(module, "_boot_id", lambda: next(hosts))

    def ahead(rendezvous: Rendezvous) -> list[Offset]:
        clock = rendezvous._clock
        rendezvous._clock = lambda: clock() + 10**9 * rendezvous.ranks.rank
        return rendezvous.measure_offsets()

    _, offset = meet(2, ahead)[0]
    assert 0 < offset.error_ns < 10**8 and abs(offset.ns + 10**9) <= offset.error_ns


def test_broadcast_names_a_lost_rank() -> None:
    def act(rendezvous: Rendezvous) -> str:
        if rendezvous.ranks.rank == 2:
            return "left"
        with pytest.raises(RankLost) as caught:
            rendezvous.broadcast(1)
        return str(caught.value)

    assert meet(3, act)[0] == "rank 2 closed the connection."


def test_receive_times_out() -> None:
    left, right = socket.socketpair()
    left.settimeout(0.05)
    with pytest.raises(RankLost, match=r"rank 1 has not answered for 0.05 s"):
        module._receive(left, "rank 1")
    right.close()
    left.close()


def test_rendezvous_rejects_another_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MEET_SECONDS", 0.5)
    with pytest.raises(RankLost, match=r"Ranks \[1\] did not connect"):
        meet(2, lambda rendezvous: rendezvous.broadcast(1), secret=lambda rank: f"secret {rank}")


def test_rendezvous_fails_without_rank_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MEET_SECONDS", 0.1)
    port = find_free_port()
    with pytest.raises(RankLost, match=f"Rank 0 does not listen at 127.0.0.1, port {port + 1}"):
        Rendezvous(Ranks(1, 2, port=port), "secret", patience_seconds=1.0)
