"""Workbooks (XLSX) as rows of texts. A process with little memory reads them, see `_read_book`."""

from __future__ import annotations

import io
import json
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from steptime.core.errors import NotInstalled, SteptimeError

READER = Path(__file__).with_name("_read_book.py")
# Of all sheets together, unpacked. A parsed sheet takes many times its size.
MOST_BYTES = 16 << 20
PIECE_BYTES = 1 << 20
MEMORY_BYTES = 512 << 20
SECONDS = 60.0
ENTRY = b"PK\x03\x04"
# A local file header: signature, versions, flags, method, time, date, crc, sizes, name, extra.
HEADER = struct.Struct("<4sHHHHHIIIHH")
METHOD, NAME_LENGTH, EXTRA_LENGTH = 3, 9, 10
DEFLATED = 8
# The number of each row as people see it, and its cells.
SheetRows = list[tuple[int, list[str]]]
DAMAGED = (
    zipfile.BadZipFile,
    ValueError,
    OSError,
    zlib.error,
    EOFError,
    # An unknown compression, or an encrypted file.
    NotImplementedError,
    RuntimeError,
)


def is_sheet(head: bytes) -> bool:
    return head[:4] == ENTRY and (b"xl/" in head or b"[Content_Types].xml" in head)


def glimpse(head: bytes) -> bytes:
    """The texts in the first bytes of a workbook: enough to tell what it is about."""
    texts = b""
    at = head.find(ENTRY)
    while 0 <= at <= len(head) - HEADER.size:
        fields = HEADER.unpack_from(head, at)
        name_at = at + HEADER.size
        content_at = name_at + fields[NAME_LENGTH] + fields[EXTRA_LENGTH]
        name = head[name_at : name_at + fields[NAME_LENGTH]]
        has_texts = b"sharedStrings" in name or name.endswith(b"sheet1.xml")
        if fields[METHOD] == DEFLATED and has_texts:
            texts += _inflate(head[content_at:])
        at = head.find(ENTRY, at + 4)
    return texts


def _inflate(data: bytes) -> bytes:
    try:
        return zlib.decompressobj(-15).decompress(data, 1 << 20)
    except zlib.error:
        return b""


def sheets(data: bytes) -> Iterator[tuple[str, SheetRows]]:
    """Each sheet's name and its rows that are not empty. Ends early if the book is damaged."""
    if find_spec("python_calamine") is None:
        raise NotInstalled("Workbooks need python-calamine: pip install 'steptime[report]'")
    try:
        _check_size(data)
    except DAMAGED:
        return
    for line in _read_book(data).splitlines():
        name, rows = json.loads(line)
        yield name, [(number, cells) for number, cells in rows]


def _check_size(data: bytes) -> None:
    """Of what the archive's directory says, and of what its streams hold."""
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        members = [file for file in book.infolist() if file.filename.endswith((".xml", ".bin"))]
        size = sum(member.file_size for member in members)
        if size > MOST_BYTES:
            raise SteptimeError(
                f"it unpacks to {size >> 20} MiB of sheets, more than {MOST_BYTES >> 20} MiB: "
                "split it, or export the sheets as CSV"
            )
        for member in members:
            _check_stream(book, member)


def _check_stream(book: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    """Raises BadZipFile if it does not hold what the directory says.

    In pieces, because `book.read` unpacks a stream whatever size the directory says."""
    with book.open(member) as stream:
        while stream.read(PIECE_BYTES):
            pass


def _read_book(data: bytes) -> bytes:
    """A line of JSON per sheet.

    A kilobyte can name a cell so far away that the grid up to it fills any memory. That, or a
    mistake of the library, ends the other process and not this one."""
    limits = f"{MEMORY_BYTES >> 20} MiB and {SECONDS:g} s"
    try:
        done = subprocess.run(
            [sys.executable, "-P", str(READER), str(MEMORY_BYTES)],
            input=data,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
            check=True,
        )
    except subprocess.SubprocessError:
        raise SteptimeError(
            f"it cannot be read within {limits}: split it, or export the sheets as CSV"
        ) from None
    return done.stdout
