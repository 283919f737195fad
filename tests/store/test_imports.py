from __future__ import annotations

from pathlib import Path

import pytest

from steptime.core.errors import SteptimeError
from steptime.core.foreign import ForeignRun
from steptime.store.imports import Imports, blob_path, foreign_runs, rows_path

SHA = "ab" + "0" * 62


def run(place: str = "line 1", **changes: object) -> ForeignRun:
    values = {
        "source": "timm",
        "original": SHA,
        "file": "a.csv",
        "location": place,
        "metrics": {"throughput": 5.0},
    }
    return ForeignRun(**{**values, **changes})


def listing(path: Path) -> list[tuple[str, int, bytes]]:
    return sorted(
        (str(f), f.stat().st_mtime_ns, f.read_bytes()) for f in path.rglob("*") if f.is_file()
    )


def test_keep_stores_original_and_rows_by_content(tmp_path: Path) -> None:
    with Imports(tmp_path) as imports:
        assert imports.keep(SHA, b"data", [run(), run("line 2", failure="no", defects=("odd",))])
    assert (tmp_path / "blobs" / "ab" / SHA).read_bytes() == b"data" and (
        tmp_path / "STORE.json"
    ).exists()
    found = list(foreign_runs(tmp_path))
    assert (
        found == [run(), run("line 2", failure="no", defects=("odd",))]
        and found[1].status == "failed"
    )


def test_keep_again_changes_nothing(tmp_path: Path) -> None:
    with Imports(tmp_path) as imports:
        imports.keep(SHA, b"data", [run()])
        before = listing(tmp_path)
        assert not imports.keep(SHA, b"data", [run()])
        assert not imports.keep(SHA, b"data", [run(file="elsewhere/b.csv")])
    assert listing(tmp_path) == before


def test_keep_replaces_the_rows_of_an_older_reader(tmp_path: Path) -> None:
    with Imports(tmp_path) as imports:
        imports.keep(SHA, b"data", [run(), run("line 2")])
        assert imports.keep(SHA, b"data", [run(metrics={"throughput": 6.0})])
    assert [found.metrics for found in foreign_runs(tmp_path)] == [{"throughput": 6.0}]


def test_keep_repairs_a_cut_original(tmp_path: Path) -> None:
    with Imports(tmp_path) as imports:
        imports.keep(SHA, b"data", [])
        blob_path(tmp_path, SHA).write_bytes(b"da")
        assert imports.keep(SHA, b"data", [])
    assert blob_path(tmp_path, SHA).read_bytes() == b"data"


def test_foreign_runs_skip_and_report_a_damaged_line(tmp_path: Path) -> None:
    with Imports(tmp_path) as imports:
        imports.keep(SHA, b"data", [run(), run("line 2")])
    file = rows_path(tmp_path, SHA)
    file.write_bytes(b'{"torn\n' + file.read_bytes() + b"[]\n")
    problems: list[str] = []
    assert len(list(foreign_runs(tmp_path, problems))) == 2
    assert len(problems) == 2 and "line 1 is damaged" in problems[0]


def test_foreign_runs_are_empty_without_imports(tmp_path: Path) -> None:
    assert list(foreign_runs(tmp_path / "none")) == [] and not (tmp_path / "none").exists()


def test_keep_refuses_a_newer_store(tmp_path: Path) -> None:
    (tmp_path / "STORE.json").write_text('{"format": 99}')
    with pytest.raises(SteptimeError, match="newer steptime"):
        Imports(tmp_path)


def test_keep_explains_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(SteptimeError, match="cannot be written"),
        Imports(tmp_path / "file") as imports,
    ):
        imports.keep(SHA, b"data", [])


def test_keep_leaves_no_draft(tmp_path: Path) -> None:
    with Imports(tmp_path) as imports:
        imports.keep(SHA, b"data", [run()])
    assert [file.name for file in tmp_path.rglob(".*")] == []
