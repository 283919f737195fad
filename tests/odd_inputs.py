"""Odd texts and damaged files for tests that mutate inputs, and the limit of time for each."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECONDS = 20  # for one input, on a busy machine
ODD_TEXTS = (
    "",
    " ",
    "0",
    "-1",
    "1.5",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "1e-400",
    "3000000000",
    "9" * 40,
    "9" * 5000,
    "1_000",
    "0x10",
    "٣",
    "²",
    "true",
    "null",
    "None",
    "[]",
    "{}",
    "1,2",
    ",",
    "1,,2",
    "=",
    "a=b",
    "a=b=c",
    "|",
    "a|b",
    ":",
    "a:b",
    "&",
    "%",
    "%s",
    "%00",
    "{devices}",
    "$HOME",
    "~",
    "*",
    "[",
    "(",
    "\\",
    "'",
    '"',
    "--",
    "-",
    "-x",
    "--help",
    "--json",
    ".",
    "a/b",
    "/dev/null",
    "/dev/full",
    "nowhere/file",
    "x" * 256,
    "x" * 10_000,
    "é",
    "e\u0301",
    "\u202e",
    "\ufeff",
    "\U0001f600",
    "\udcff",
    "line\nline",
    "tab\t",
    "\x1b[31m",
    "\x7f",
    "<script>",
    "'; DROP TABLE runs; --",
)
# What replaces one word or number of a text file.
ODD_TOKENS = (
    b"",
    b"0",
    b"-1",
    b"nan",
    b"inf",
    b"1e999",
    b"9" * 40,
    b"9" * 5000,
    b"true",
    b"null",
    b'""',
    b"''",
    b"[]",
    b"{}",
    b'["x", 1]',
    b'{"x": null}',
    b"[" * 5000,
    b"{x = " * 2000,
    b'"\\ud800"',
    b"\xff\xfe",
    b"\0",
    b"\r",
    b"\n\n",
    b",",
    b"=",
    b"x" * 3000,
    "é".encode(),
    "٣".encode(),
)
TOKEN = re.compile(rb"[\w.+-]+|\"[^\"\n]*\"|[\[\]{}=:,|]")
TEXT_DAMAGES = 8  # of ten damages of a text; bytes of other files are not tokens


class Hang(BaseException):
    """No command may catch it, so it is no Exception."""


@contextmanager
def time_limit(seconds: int = SECONDS) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise Hang(f"no end after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def damage(data: bytes, rng: random.Random) -> bytes:
    """The content with one thing changed; most changes of a text are of one word in it."""
    tokens = list(TOKEN.finditer(data)) if b"\0" not in data else []
    if tokens and rng.randrange(10) < TEXT_DAMAGES:
        token = rng.choice(tokens)
        odd = rng.choice((*ODD_TOKENS, rng.choice(tokens)[0]))
        return data[: token.start()] + odd + data[token.end() :]
    start = rng.randrange(len(data) + 1)
    end = min(len(data), start + rng.randrange(1, 100))
    match rng.randrange(8):
        case 0:
            return data[:start]
        case 1:
            return data[:start] + data[end:]
        case 2:
            return data[:end] + data[start:]
        case 3:
            return data[:start] + rng.randbytes(end - start) + data[end:]
        case 4:
            return data[:start] + bytes(end - start) + data[end:]
        case 5:
            return data.decode("latin-1").encode("utf-16")
        case 6:
            return b"\xef\xbb\xbf" + data
    if not data:
        return rng.randbytes(100)
    position = rng.randrange(len(data))
    flipped = data[position] ^ 1 << rng.randrange(8)
    return data[:position] + bytes([flipped]) + data[position + 1 :]


# What may stand in the place of a file, without any content.
REPLACEMENTS = ("empty", "absent", "folder", "pipe", "loop", "nowhere", "noise", "device")


def replace(path: Path, kind: str, rng: random.Random) -> None:
    """Put something else in the place of a file."""
    remove(path)
    if kind == "empty":
        path.touch()
    elif kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "loop":
        path.symlink_to(path.name)
    elif kind == "nowhere":
        path.symlink_to("nowhere/at/all")
    elif kind == "noise":
        path.write_bytes(rng.randbytes(2000))
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        assert kind == "absent"


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
