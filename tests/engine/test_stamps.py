from __future__ import annotations

from steptime.engine.stamps import CHUNK, Stamps


def write(stamps: Stamps, values: list[int]) -> None:
    view = stamps.room(len(values))
    for value in values:
        view[stamps.used] = value
        stamps.used += 1


def test_stamps_keep_order_across_chunks():
    stamps = Stamps(chunk=4)
    for first in range(0, 12, 3):
        write(stamps, [first, first + 1, first + 2])
    assert stamps.values() == list(range(12)) and len(stamps) == 12


def test_stamps_add_chunk_only_without_room():
    stamps = Stamps(chunk=4)
    view = stamps.room(4)
    assert stamps.room(4) is view
    stamps.used = 1
    assert stamps.room(4) is not view


def test_stamps_have_room_for_block_longer_than_chunk():
    assert len(Stamps().room(CHUNK + 1)) == CHUNK + 1


def test_stamps_hold_a_century_of_nanoseconds():
    stamps = Stamps(chunk=1)
    write(stamps, [100 * 365 * 86_400 * 10**9])
    assert stamps.values() == [100 * 365 * 86_400 * 10**9]
