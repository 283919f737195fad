"""Spreadsheets (XLSX) as rows of texts, with the standard library alone. Knows nothing of what is in them."""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from xml.etree import ElementTree

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
MOST_BYTES = 64 << 20  # of one part, unpacked
HEADER = struct.Struct("<4sHHHHHIIIHH")
Rows = list[tuple[int, list[str]]]  # number of the row as people see it, cells


def is_sheet(head: bytes) -> bool:
    return head[:4] == b"PK\x03\x04" and (b"xl/" in head or b"[Content_Types].xml" in head)


def glimpse(head: bytes) -> bytes:
    """The texts of a workbook as far as its first bytes hold them: enough to see what it is about."""
    found, at = b"", head.find(b"PK\x03\x04")
    while 0 <= at <= len(head) - HEADER.size:
        fields = HEADER.unpack_from(head, at)
        start = at + HEADER.size + fields[9] + fields[10]
        name = head[at + HEADER.size : at + HEADER.size + fields[9]]
        if fields[3] == 8 and (b"sharedStrings" in name or name.endswith(b"sheet1.xml")):
            found += _inflated(head[start:])
        at = head.find(b"PK\x03\x04", at + 4)
    return found


def _inflated(data: bytes) -> bytes:
    try:
        return zlib.decompressobj(-15).decompress(data, 1 << 20)
    except zlib.error:
        return b""


def sheets(data: bytes) -> Iterator[tuple[str, Rows]]:
    """Each sheet's name and its rows that are not empty; ends early where the workbook is damaged."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as book:
            texts = _texts(book)
            for name, part in _parts(book):
                yield name, list(_rows(_tree(book, part), texts))
    except (
        zipfile.BadZipFile,
        ElementTree.ParseError,
        KeyError,
        ValueError,
        OSError,
        zlib.error,
        EOFError,
    ):
        return
    except (NotImplementedError, RuntimeError):  # an unknown compression, or encrypted
        return


def _tree(book: zipfile.ZipFile, part: str) -> ElementTree.Element:
    if book.getinfo(part).file_size > MOST_BYTES:
        raise ValueError(f"{part} is larger than {MOST_BYTES} bytes")
    return ElementTree.fromstring(book.read(part))


def _texts(book: zipfile.ZipFile) -> list[str]:
    if "xl/sharedStrings.xml" not in book.namelist():
        return []
    entries = _tree(book, "xl/sharedStrings.xml").findall(f"{MAIN}si")
    return ["".join(text.text or "" for text in entry.iter(f"{MAIN}t")) for entry in entries]


def _parts(book: zipfile.ZipFile) -> Iterator[tuple[str, str]]:
    targets = {r.get("Id"): r.get("Target", "") for r in _tree(book, "xl/_rels/workbook.xml.rels")}
    for sheet in _tree(book, "xl/workbook.xml").iter(f"{MAIN}sheet"):
        target = targets[sheet.get(RELATION)].lstrip("/")
        yield sheet.get("name", ""), target if target.startswith("xl/") else f"xl/{target}"


def _rows(tree: ElementTree.Element, texts: list[str]) -> Iterator[tuple[int, list[str]]]:
    for row in tree.iter(f"{MAIN}row"):
        cells = {
            _column(cell.get("r", "A1")): _value(cell, texts) for cell in row.findall(f"{MAIN}c")
        }
        if any(cells.values()):
            yield int(row.get("r", "0")), [cells.get(i, "") for i in range(max(cells) + 1)]


def _value(cell: ElementTree.Element, texts: list[str]) -> str:
    value = cell.find(f"{MAIN}v")
    if cell.get("t") == "inlineStr":
        return "".join(text.text or "" for text in cell.iter(f"{MAIN}t"))
    if value is None or value.text is None:
        return ""
    return (
        texts[int(value.text)]
        if cell.get("t") == "s" and int(value.text) < len(texts)
        else value.text
    )


def _column(reference: str) -> int:
    """A is 0, Z 25, AA 26. A sheet has at most 16,384 columns."""
    found = re.match(r"[A-Z]{1,3}", reference)
    place = 0
    for letter in found[0] if found else "A":
        place = place * 26 + ord(letter) - 64
    return min(place, 16_384) - 1
