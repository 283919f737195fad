"""Spreadsheets (XLSX) as rows of texts, with the standard library alone."""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from xml.etree import ElementTree

from steptime.core.errors import SteptimeError

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
# Of all sheets together, unpacked. A parsed sheet takes many times its size.
MOST_BYTES = 16 << 20
MOST_COLUMNS = 16_384
ENTRY = b"PK\x03\x04"
# A local file header: signature, versions, flags, method, time, date, crc, sizes, name, extra.
HEADER = struct.Struct("<4sHHHHHIIIHH")
METHOD, NAME_LENGTH, EXTRA_LENGTH = 3, 9, 10
DEFLATED = 8
# The number of each row as people see it, and its cells.
SheetRows = list[tuple[int, list[str]]]
DAMAGED = (
    zipfile.BadZipFile,
    ElementTree.ParseError,
    KeyError,
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
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as book:
            _check_size(book)
            texts = _shared_texts(book)
            for name, member in _sheet_members(book):
                yield name, list(_rows(_parse_xml(book, member), texts))
    except DAMAGED:
        return


def _check_size(book: zipfile.ZipFile) -> None:
    size = sum(member.file_size for member in book.infolist() if member.filename.endswith(".xml"))
    if size > MOST_BYTES:
        raise SteptimeError(
            f"it unpacks to {size >> 20} MiB of sheets, more than {MOST_BYTES >> 20} MiB: "
            "split it, or export the sheets as CSV"
        )


def _parse_xml(book: zipfile.ZipFile, member: str) -> ElementTree.Element:
    # An archive may hold more than its directory says: `read` then raises BadZipFile.
    return ElementTree.fromstring(book.read(member))


def _shared_texts(book: zipfile.ZipFile) -> list[str]:
    if "xl/sharedStrings.xml" not in book.namelist():
        return []
    tree = _parse_xml(book, "xl/sharedStrings.xml")
    return [_join_texts(entry) for entry in tree.findall(f"{MAIN}si")]


def _join_texts(element: ElementTree.Element) -> str:
    return "".join(text.text or "" for text in element.iter(f"{MAIN}t"))


def _sheet_members(book: zipfile.ZipFile) -> Iterator[tuple[str, str]]:
    """The name of each sheet, and of the member of the archive that holds it."""
    relations = _parse_xml(book, "xl/_rels/workbook.xml.rels")
    targets = {relation.get("Id"): relation.get("Target", "") for relation in relations}
    for sheet in _parse_xml(book, "xl/workbook.xml").iter(f"{MAIN}sheet"):
        target = targets[sheet.get(RELATION)].lstrip("/")
        if not target.startswith("xl/"):
            target = f"xl/{target}"
        yield sheet.get("name", ""), target


def _rows(tree: ElementTree.Element, texts: list[str]) -> Iterator[tuple[int, list[str]]]:
    for row in tree.iter(f"{MAIN}row"):
        cells = {}
        for cell in row.findall(f"{MAIN}c"):
            cells[_column(cell.get("r", "A1"))] = _cell_text(cell, texts)
        if any(cells.values()):
            columns = range(max(cells) + 1)
            yield int(row.get("r", "0")), [cells.get(column, "") for column in columns]


def _cell_text(cell: ElementTree.Element, texts: list[str]) -> str:
    if cell.get("t") == "inlineStr":
        return _join_texts(cell)
    value = cell.find(f"{MAIN}v")
    if value is None or value.text is None:
        return ""
    if cell.get("t") == "s" and int(value.text) < len(texts):
        return texts[int(value.text)]
    return value.text


def _column(reference: str) -> int:
    """A is 0, Z 25, AA 26."""
    match = re.match(r"[A-Z]{1,3}", reference)
    letters = match[0] if match else "A"
    column = 0
    for letter in letters:
        column = column * 26 + ord(letter) - 64
    return min(column, MOST_COLUMNS) - 1
