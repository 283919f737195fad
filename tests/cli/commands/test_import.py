"""`steptime import`."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., "subprocess.CompletedProcess[str]"]
TIMM = """model,infer_img_size,infer_samples_per_sec,infer_step_time,infer_batch_size,param_count
resnet50,224,100,320,32,25
resnet18,224,,,32,11
resnet34,224,100,100,32,21
"""
ENTRY = '{"authorEmail": "a@b", "author": "A", "hardware": "1 V100", "model": "m", "framework": "PyTorch 1.0"}'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four rows: one good, one empty, one impossible, one failed; and two files that are no results."""
    top = tmp_path / "others"
    (top / "CIFAR10" / "train").mkdir(parents=True)
    (top / "timm.csv").write_text(TIMM)
    (top / "CIFAR10" / "train" / "a.json").write_text(ENTRY)
    (top / "CIFAR10" / "train" / "a.tsv").write_text("epoch\thours\ttop1Accuracy\n1\t0.5\t90.0\n")
    (top / "README.md").write_text("Results of others.\n")
    (top / "copy.csv").write_text(TIMM)
    return top


def test_a_folder_is_taken_with_everything_in_it(steptime: Command, folder: Path) -> None:
    answer = steptime("import", "others")
    assert answer.returncode == 0 and answer.stderr == ""
    lines = {line.split("  ")[0]: line.split()[-5:] for line in answer.stdout.splitlines()}
    assert lines["timm benchmark and accuracy tables"] == ["1", "2", "0", "1", "1"]
    assert lines["DAWNBench entries"] == ["2", "1", "1", "1", "0"] and lines["total"] == [
        "3",
        "3",
        "1",
        "2",
        "1",
    ]
    assert "others/README.md: no reader recognises it" in answer.stdout
    assert "1 files have the same content as another of them." in answer.stdout


def test_reasons_are_grouped_or_told_row_by_row(steptime: Command, folder: Path) -> None:
    grouped = steptime("import", "others").stdout
    assert "quarantined       1  timm: throughput times step time is #, the batch #" in grouped
    every = steptime("import", "others", "--rows").stdout
    assert (
        "others/copy.csv  line 4  quarantined: throughput times step time is 10, the batch 32"
        in every
    )
    assert (
        "others/copy.csv  line 2  taken" in every
        and "others/copy.csv  line 3  skipped: no speed: ''" in every
    )


def test_importing_again_changes_nothing(steptime: Command, folder: Path, tmp_path: Path) -> None:
    steptime("import", "others")
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "results").rglob("*")}
    again = steptime("import", "others")
    assert again.stdout.rstrip().endswith("Everything was in the store already: nothing changed.")
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "results").rglob("*")} == before


def test_json_tells_the_same(steptime: Command, folder: Path) -> None:
    found = json.loads(steptime("import", "others", "--json", "--rows").stdout)
    assert found["total"] == {"files": 3, "rows": 3, "failed": 1, "skipped": 2, "quarantined": 1}
    assert found["formats"]["timm"]["reasons"]["skipped"] == {"no speed: ''": 1}
    assert (
        found["unrecognised"] == ["others/README.md"]
        and len(found["rows"]) == 5
        and found["changed"] == 3
    )


def test_what_nobody_recognises_is_code_3(steptime: Command, folder: Path) -> None:
    answer = steptime("import", "others/README.md")
    assert answer.returncode == 3 and answer.stdout == "README.md: no reader recognises it\n"


def test_a_path_that_is_not_there_is_a_sentence(steptime: Command) -> None:
    answer = steptime("import", "nowhere")
    assert (
        answer.returncode == 1 and answer.stderr == "error: There is no file or folder nowhere.\n"
    )


def test_an_empty_folder_is_a_sentence(steptime: Command, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    answer = steptime("import", "empty")
    assert answer.returncode == 1 and answer.stderr == "error: There is no file in empty.\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_can_not_be_read_leaves_the_rest_alone(steptime: Command, folder: Path) -> None:
    (folder / "README.md").chmod(0)
    answer = steptime("import", "others")
    assert (
        answer.returncode == 4
        and "README.md: Permission denied" in answer.stderr
        and "total" in answer.stdout
    )


def test_the_store_keeps_no_path_of_this_machine(
    steptime: Command, folder: Path, tmp_path: Path
) -> None:
    steptime("import", str(folder))
    text = b"".join(file.read_bytes() for file in (tmp_path / "results" / "imports").iterdir())
    assert b"others/copy.csv" in text and str(tmp_path).encode() not in text
