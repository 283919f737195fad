"""`steptime import`: tables, rows, JSON, exit codes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from command_line import Command, Snapshot

TIMM = """model,infer_img_size,infer_samples_per_sec,infer_step_time,infer_batch_size,param_count
resnet50,224,100,320,32,25
resnet18,224,,,32,11
resnet34,224,100,100,32,21
"""
ENTRY = {
    "authorEmail": "a@b",
    "author": "A",
    "hardware": "1 V100",
    "model": "m",
    "framework": "PyTorch 1.0",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One good row, an empty, an impossible and a failed one; and two files without results."""
    top = tmp_path / "others"
    (top / "CIFAR10" / "train").mkdir(parents=True)
    (top / "timm.csv").write_text(TIMM)
    (top / "CIFAR10" / "train" / "a.json").write_text(json.dumps(ENTRY))
    (top / "CIFAR10" / "train" / "a.tsv").write_text("epoch\thours\ttop1Accuracy\n1\t0.5\t90.0\n")
    (top / "README.md").write_text("Results of others.\n")
    (top / "copy.csv").write_text(TIMM)
    return top


@pytest.mark.parametrize("columns", [80, 120])
def test_import_of_a_folder(
    columns: int, steptime: Command, folder: Path, snapshot: Snapshot
) -> None:
    done = steptime("import", "others", columns=columns)
    assert (done.returncode, done.stderr) == (0, "")
    snapshot(f"import-{columns}", done.stdout)


def test_import_rows_shows_what_became_of_each(
    steptime: Command, folder: Path, snapshot: Snapshot
) -> None:
    snapshot("import-rows", steptime("import", "others", "--rows").stdout)


def test_import_again_changes_nothing(steptime: Command, folder: Path, tmp_path: Path) -> None:
    steptime("import", "others")
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "results").rglob("*")}
    again = steptime("import", "others")
    assert again.stdout.rstrip().endswith("Everything was in the store already: nothing changed.")
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "results").rglob("*")} == before


def test_import_json_has_counts_reasons_and_rows(steptime: Command, folder: Path) -> None:
    document = json.loads(steptime("import", "others", "--json", "--rows").stdout)
    counts = {"files": 3, "rows": 3, "failed": 1, "skipped": 2, "quarantined": 1}
    assert document["total"] == counts
    assert document["formats"]["timm"]["reasons"]["skipped"] == {"no speed: ''": 1}
    assert document["unrecognised"] == ["others/README.md"] and document["files_changed"] == 3
    assert document["duplicates"] == {"others/timm.csv": "others/copy.csv"}
    outcomes = sorted(row["outcome"] for row in document["rows"])
    assert outcomes == ["failed", "imported", "quarantined", "skipped", "skipped"]


def test_import_of_unrecognised_files_alone_exits_3(steptime: Command, folder: Path) -> None:
    done = steptime("import", "others/README.md")
    assert done.returncode == 3 and done.stdout == "README.md: no reader recognises it\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_import_of_an_unreadable_file_imports_the_rest_and_exits_4(
    steptime: Command, folder: Path
) -> None:
    (folder / "README.md").chmod(0)
    done = steptime("import", "others")
    assert done.returncode == 4 and "README.md: Permission denied" in done.stderr
    assert "total" in done.stdout


def test_import_stores_no_path_of_this_machine(
    steptime: Command, folder: Path, tmp_path: Path
) -> None:
    steptime("import", str(folder))
    text = b"".join(file.read_bytes() for file in (tmp_path / "results" / "imports").iterdir())
    assert b"others/copy.csv" in text and str(tmp_path).encode() not in text
