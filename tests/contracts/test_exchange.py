"""What every reader of a foreign format promises."""

from __future__ import annotations

import random

import pytest

from steptime import shelf
from steptime.exchange import Original

READERS = shelf.names("exchange")
NOTHING = {
    "empty": b"",
    "zeros": bytes(3000),
    "prose": b"To be, or not to be: that is the question.\nWhether 'tis nobler\n" * 40,
    "python": b'"""A module."""\n\nimport os\n\n\ndef main() -> None:\n    print(os.sep)\n',
    "object": b'{"name": "a", "values": [1, 2, 3], "nested": {"deep": null}}',
    "table": b"name,age\nann,3\nbob,4\n",
    "picture": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8,
}


def test_files_that_readers_share_are_no_readers() -> None:
    assert READERS and not [name for name in READERS if name.startswith("_")]


@pytest.mark.parametrize("name", READERS)
def test_a_reader_has_a_title_and_two_functions(name: str) -> None:
    reader = shelf.load("exchange", name)
    assert isinstance(reader.TITLE, str) and reader.TITLE
    assert callable(reader.recognises) and callable(reader.read)


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("kind", NOTHING)
def test_a_reader_does_not_claim_what_is_not_its_own(name: str, kind: str) -> None:
    assert not shelf.load("exchange", name).recognises("results/file", NOTHING[kind])


@pytest.mark.parametrize("name", READERS)
def test_a_reader_survives_any_bytes(name: str) -> None:
    reader, dice = shelf.load("exchange", name), random.Random(name)
    for _ in range(40):
        data = dice.randbytes(dice.randrange(2000))
        reader.recognises("file", data)
        list(reader.read(Original("file", data, source=name)))


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("kind", NOTHING)
def test_a_reader_survives_other_kinds_of_files(name: str, kind: str) -> None:
    list(shelf.load("exchange", name).read(Original("file", NOTHING[kind], source=name)))
