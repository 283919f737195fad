from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from steptime.core.case import Case
from steptime.core.errors import Unsupported
from steptime.core.ranks import Ranks
from steptime.engine.council import Council
from steptime.engine.exchanging import REPEATS, exchanges, lacking
from steptime.engine.gang import free_port

BYTES = 1000


class Exchanging:
    def __init__(self) -> None:
        self.times = 0

    def exchange(self) -> int:
        self.times += 1
        return BYTES

    def facts(self) -> dict[str, Any]:
        return {"exchange_backend": "pigeons"}


class Alone:
    def exchange(self) -> int:
        raise Unsupported("These ranks exchange nothing.")


def run(programs: list[Any]) -> list[dict[str, Any]]:
    port = free_port()

    def one(rank: int) -> dict[str, Any]:
        council = Council(Ranks(rank, len(programs), port=port), "secret", patience_seconds=5.0)
        try:
            return exchanges(programs[rank], council)
        finally:
            council.close()

    with ThreadPoolExecutor(len(programs)) as pool:
        return list(pool.map(one, range(len(programs))))


def test_the_first_rank_tells_what_all_have_exchanged() -> None:
    programs = [Exchanging() for _ in range(4)]
    first, *others = run(programs)
    told = first["exchange"]
    assert (told["backend"], told["ranks"], told["bytes"]) == ("pigeons", 4, BYTES) and others == [{}] * 3
    assert REPEATS[0] <= len(told["seconds"]) <= REPEATS[1] and min(told["seconds"]) > 0
    middle = sorted(told["seconds"])[len(told["seconds"]) // 2]
    assert told["bus_bytes_per_second"] == pytest.approx(1.5 * BYTES / middle, rel=0.5)


def test_the_first_exchange_connects_and_does_not_count() -> None:
    programs = [Exchanging(), Exchanging()]
    told = run(programs)[0]["exchange"]
    assert [program.times for program in programs] == [1 + len(told["seconds"])] * 2


@pytest.mark.parametrize("program", [Alone(), object()])
def test_ranks_that_exchange_nothing_tell_nothing(program: Any) -> None:
    assert run([program, program]) == [{}, {}]


@pytest.mark.parametrize(
    ("program", "settings", "refused"),
    [
        (Exchanging(), {"exchange": "allreduce"}, False),
        (object(), {"exchange": "allreduce"}, True),
        (object(), {"exchange": "parameter_server"}, True),
        (object(), {"exchange": "independent"}, False),
        (object(), {"exchange": "allreduce", "phase": "inference"}, False),
    ],
)
def test_only_training_that_exchanges_needs_a_program_that_does(program: Any, settings: Any, refused: bool) -> None:
    assert bool(lacking(program, Case(workload="lenet5", devices=2, **settings))) is refused
