"""Checksums of a journal's lines: each covers its line and the checksum of the line before.

A flipped bit, a lost line and a line in another place all show. The checksum is the last name of
a line's JSON object. Journals of older versions have none."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

# Of SHA-256: enough to notice damage by chance.
DIGITS = 16
SUFFIX = re.compile(rb',"checksum":"([0-9a-f]{%d})"}' % DIGITS)
SUFFIX_BYTES = len(b',"checksum":""}') + DIGITS


def seal(line: bytes, previous: str) -> tuple[bytes, str]:
    """A line of JSON with its checksum, and the checksum; `previous` is that of the line before."""
    checksum = _digest(line, previous)
    return b'%b,"checksum":"%b"}' % (line[:-1], checksum.encode()), checksum


def read_checksum(line: bytes) -> str:
    """What the line says its checksum is; empty if it has none."""
    match = SUFFIX.fullmatch(line[-SUFFIX_BYTES:])
    return match[1].decode() if match else ""


def last_checksum(lines: Iterable[bytes]) -> str | None:
    """The checksum that a new last line has to follow. None: the journal has no checksums."""
    complete = [line for line in lines if line.endswith(b"}")]
    if not complete:
        return ""
    for line in reversed(complete):
        if checksum := read_checksum(line):
            return checksum
    return None


def has_checksums(lines: Iterable[bytes]) -> bool:
    return any(read_checksum(line) for line in lines)


def broken_line(lines: Iterable[bytes]) -> int | None:
    """The first of these lines that is not as it was written, by its position."""
    previous = ""
    for position, line in enumerate(lines):
        checksum = read_checksum(line)
        if not checksum or checksum != _digest(line[:-SUFFIX_BYTES] + b"}", previous):
            return position
        previous = checksum
    return None


def seal_again(lines: Iterable[bytes]) -> list[bytes]:
    """These lines, some of them changed on purpose, with checksums that fit."""
    previous = ""
    sealed = []
    for line in lines:
        if read_checksum(line):
            line, previous = seal(line[:-SUFFIX_BYTES] + b"}", previous)
        sealed.append(line)
    return sealed


def _digest(line: bytes, previous: str) -> str:
    return hashlib.sha256(previous.encode() + line).hexdigest()[:DIGITS]
