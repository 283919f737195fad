"""Workbooks as rows of texts, and what a bad one may do."""

from __future__ import annotations

import io
import random
import struct
import zipfile
from pathlib import Path

import pytest

from odd_inputs import damage
from steptime import formats
from steptime.core.errors import NotInstalled, SteptimeError
from steptime.formats import Original, _xlsx
from steptime.formats._xlsx import sheets
from workbooks import cell, pack_book, workbook

FIXTURE = Path(__file__).parents[1] / "fixtures" / "foreign" / "deepbench_sheets.xlsx"
ROWS = 40_000


def test_sheets_have_names_and_numbered_rows() -> None:
    book = workbook({"a": [["x", "", "y"], [], ["z"]], "b": [[]], "c": [["", "1"]]})
    assert list(sheets(book)) == [
        ("a", [(1, ["x", "", "y"]), (3, ["z"])]),
        ("b", []),
        ("c", [(1, ["", "1"])]),
    ]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ('<c r="A1"><v>16</v></c>', "16"),
        ('<c r="A1"><v>3.7999999999999999E-2</v></c>', "0.038"),
        ('<c r="A1"><v>1e300</v></c>', str(int(1e300))),
        ('<c r="A1" t="b"><v>1</v></c>', "1"),
        ('<c r="A1" t="str"><v>N/A*</v></c>', "N/A*"),
        ('<c r="A1" t="s"><v>0</v></c>', "shared"),
    ],
)
def test_sheets_cell_is_its_text(written: str, expected: str) -> None:
    book = pack_book({"a": f'<row r="1">{written}</row>'}, "<si><t>shared</t></si>")
    assert list(sheets(book)) == [("a", [(1, [expected])])]


def test_sheets_error_of_a_formula_is_an_empty_cell() -> None:
    book = pack_book({"a": f'<row r="1"><c r="A1" t="e"><v>#DIV/0!</v></c>{cell("B1", "x")}</row>'})
    assert list(sheets(book)) == [("a", [(1, ["", "x"])])]


def test_sheets_that_unpack_to_too_much_are_refused() -> None:
    with pytest.raises(SteptimeError, match="unpacks to 20 MiB of sheets"):
        list(sheets(pack_book({"a": " " * (20 << 20)})))


def test_sheets_with_a_larger_stream_than_the_directory_says_are_no_book() -> None:
    book = pack_book({"a": f'<row r="1">{cell("A1", "x")}</row>' + " " * (20 << 20)})
    # Its header ends with the unpacked size, two lengths and the name.
    at = book.index(b"xl/worksheets/sheet1.xml")
    size = book[at - 8 : at - 4]
    assert book.count(size) == 2
    assert list(sheets(book.replace(size, struct.pack("<I", 1000)))) == []


@pytest.mark.parametrize(
    "rows",
    [
        f'<row r="1">{cell("A1", "x")}</row><row r="1048576">{cell("XFD1048576", "x")}</row>',
        "".join(f'<row r="{n}">{cell(f"XFD{n}", "x")}</row>' for n in range(1, ROWS)),
        "".join(f'<row r="{n}"><c r="A{n}" t="s"><v>0</v></c></row>' for n in range(1, ROWS)),
    ],
    ids=["one cell far away", "many cells far away", "one long text many times"],
)
def test_sheets_that_need_too_much_memory_are_refused(rows: str) -> None:
    """In the process itself, such a book would end it, and the import with it."""
    book = pack_book({"a": rows}, f"<si><t>{'y' * 100_000}</t></si>")
    with pytest.raises(SteptimeError, match="cannot be read within 512 MiB"):
        list(sheets(book))


@pytest.mark.parametrize("place", ["ZZZZZZZZ1", "A99999999999", "A0", "A", "1", "&#65;1", "a:b"])
def test_sheets_cell_outside_of_every_sheet_ends_the_book(place: str) -> None:
    rows = f'<row r="1">{cell(place, "x")}</row>'
    assert list(sheets(pack_book({"a": rows}))) in ([], [("a", [])], [("a", [(1, ["x"])])])


def test_sheets_before_a_damaged_one_are_kept() -> None:
    damaged = '<row r="1"><c r="A1" t="s"><v>99</v></c></row>'
    book = pack_book({"a": f'<row r="1">{cell("A1", "x")}</row>', "b": damaged})
    assert list(sheets(book)) == [("a", [(1, ["x"])])]


def test_sheets_without_the_library_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_xlsx, "find_spec", lambda name: None)
    with pytest.raises(NotInstalled, match=r"pip install 'steptime\[report\]'"):
        list(sheets(FIXTURE.read_bytes()))


def test_sheets_of_a_slow_reader_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(60)")
    monkeypatch.setattr(_xlsx, "READER", tmp_path / "slow.py")
    monkeypatch.setattr(_xlsx, "SECONDS", 0.1)
    with pytest.raises(SteptimeError, match=r"cannot be read within 512 MiB and 0\.1 s"):
        list(sheets(FIXTURE.read_bytes()))


@pytest.mark.parametrize("inside", [False, True], ids=["archive", "files in it"])
def test_mutated_workbook_never_breaks_its_reader(inside: bool) -> None:
    rng = random.Random(18)
    data = FIXTURE.read_bytes()
    for _ in range(25):
        mutated = damage_member(data, rng) if inside else damage(data, rng)
        file = Original("a.xlsx", mutated, source="deepbench_sheets")
        broken = formats.read(file).broken
        assert not broken or "cannot be read within" in broken, broken


def damage_member(data: bytes, rng: random.Random) -> bytes:
    """A change of the archive rarely reaches beyond its checksums."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(sorted(members))
    members[name] = damage(members[name], rng)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()
