"""The smallest workbooks that a spreadsheet program opens."""

from __future__ import annotations

import io
import zipfile

SPACE = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = 'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'


def workbook(sheets: dict[str, list[list[str]]]) -> bytes:
    """With inline texts; an empty text is no cell."""
    contents = {}
    for name, rows in sheets.items():
        lines = [f'<row r="{n}">{cells(n, row)}</row>' for n, row in enumerate(rows, 1)]
        contents[name] = "".join(lines)
    return pack_book(contents)


def cells(n: int, row: list[str]) -> str:
    return "".join(cell(f"{chr(65 + i)}{n}", text) for i, text in enumerate(row) if text)


def cell(place: str, text: str) -> str:
    return f'<c r="{place}" t="inlineStr"><is><t>{text}</t></is></c>'


def pack_book(sheets: dict[str, str], shared_texts: str = "") -> bytes:
    """From the rows of each sheet, as XML."""
    names, relations = "", ""
    members = {"_rels/.rels": document(relation("b", "officeDocument", "xl/workbook.xml"))}
    for i, (name, rows) in enumerate(sheets.items(), 1):
        names += f'<sheet name="{name}" sheetId="{i}" r:id="r{i}"/>'
        relations += relation(f"r{i}", "worksheet", f"worksheets/sheet{i}.xml")
        data = f"<worksheet {SPACE}><sheetData>{rows}</sheetData></worksheet>"
        members[f"xl/worksheets/sheet{i}.xml"] = data
    book = f'<workbook {SPACE} xmlns:r="{OFFICE}"><sheets>{names}</sheets></workbook>'
    members["xl/workbook.xml"] = book
    members["xl/_rels/workbook.xml.rels"] = document(relations)
    if shared_texts:
        members["xl/sharedStrings.xml"] = f"<sst {SPACE}>{shared_texts}</sst>"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def document(relations: str) -> str:
    return f"<Relationships {PACKAGE}>{relations}</Relationships>"


def relation(identifier: str, kind: str, target: str) -> str:
    return f'<Relationship Id="{identifier}" Type="{OFFICE}/{kind}" Target="{target}"/>'
