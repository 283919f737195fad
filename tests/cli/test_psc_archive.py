"""PSC's results folder: names, table and charts of a campaign; what was there before is kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from factories import make_attempt, make_times
from steptime.cli.psc_archive import write_archive
from steptime.core.errors import SteptimeError
from steptime.core.record import Failure, Record
from steptime.formats import Original, read

pytest.importorskip("duckdb", reason="the guide is not installed: pip install '.[guide]'")
pytest.importorskip("vl_convert", reason="the guide is not installed: pip install '.[guide]'")
DAY = "2026-01-01"


def make_run(batch_size: int, staging: str, **changes: Any) -> Record:
    slurm = {"SLURMD_NODENAME": "n7", "SLURM_JOB_ID": "42", "SLURM_JOB_PARTITION": "k80"}
    settings = {"workload": "deepmnist", "node_type": "k80", **changes}
    attempt = make_attempt(
        make_times(1),
        batch_size=batch_size,
        staging=staging,
        environment={"slurm": slurm},
        network={"unit": "images", "units_per_step": batch_size, "fingerprint": "f"},
        **settings,
    )
    return Record(attempts=(replace(attempt, id=attempt.case.key),))


def file_names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_archive_has_a_file_per_run_a_table_and_charts(tmp_path: Path) -> None:
    write_archive([make_run(50, "local"), make_run(50, "scratch")], tmp_path)
    charts = [f"{DAY}:k80:local.svg", f"{DAY}:k80:scratch.svg"]
    files = file_names(tmp_path)
    assert [name for name in files if not name.endswith(".csv")] == [
        f"{DAY}-k80:1:local",
        f"{DAY}-k80:1:scratch",
        *charts,
    ]
    assert files[-1].endswith(":TF_PERFORMANCE_RESULTS.csv")


def test_file_names_have_the_batch_if_it_differs(tmp_path: Path) -> None:
    write_archive(
        [make_run(50, "local"), make_run(128, "local"), make_run(128, "local", seed=1)], tmp_path
    )
    assert file_names(tmp_path)[:3] == [
        f"{DAY}-k80:1:128:local",
        f"{DAY}-k80:1:128:local.2",
        f"{DAY}-k80:1:50:local",
    ]


def test_a_file_of_a_run_imports_like_one_of_psc(tmp_path: Path) -> None:
    write_archive([make_run(50, "local")], tmp_path)
    path = tmp_path / f"{DAY}-k80:1:local"
    (imported,) = read(Original(path.name, path.read_bytes(), path.name)).runs
    names = ("server", "data", "effective_batch")
    assert [imported.dimensions[name] for name in names] == ["n7", "local", 50]
    assert imported.source == "psc"
    assert imported.metrics["mean_speed"] == pytest.approx(50 / imported.metrics["mean_time"])


def test_a_failure_has_a_file_and_no_row_in_the_table(tmp_path: Path) -> None:
    good, bad = make_run(50, "local"), make_run(50, "scratch")
    failed = replace(
        bad.attempts[0], measurement=None, failure=Failure(cause="timed_out", reason="Too long.")
    )
    write_archive([good, Record(attempts=(failed,))], tmp_path)
    assert "failed, timed_out: Too long." in (tmp_path / f"{DAY}-k80:1:scratch").read_text()
    (table,) = tmp_path.glob("*.csv")
    assert table.read_text().count("\n") == 2


def test_older_files_are_moved_aside(tmp_path: Path) -> None:
    name = f"{DAY}-k80:1:local"
    (tmp_path / "notes.txt").write_text("mine")
    for text in ("oldest", "older"):
        (tmp_path / name).write_text(text)
        write_archive([make_run(50, "local")], tmp_path)
    archived = tmp_path / "archived"
    assert ((archived / name).read_text(), (archived / "2" / name).read_text()) == (
        "oldest",
        "older",
    )
    assert (tmp_path / "notes.txt").read_text() == "mine" and "Mean Speed" in (
        tmp_path / name
    ).read_text()


def test_writing_the_same_again_moves_nothing(tmp_path: Path) -> None:
    for _ in range(2):
        write_archive([make_run(50, "local")], tmp_path)
    assert not (tmp_path / "archived").exists()


def test_a_campaign_of_other_networks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SteptimeError, match="fits PSC's archive"):
        write_archive([make_run(50, "local", workload="mnist-mlp")], tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SteptimeError, match="cannot be used"):
        write_archive([make_run(50, "local")], tmp_path / "file")


@pytest.mark.parametrize(("device", "is_gpu"), [("cuda:0", True), ("cpu", False)])
def test_a_file_names_gpus_only_if_there_are_any(device: str, is_gpu: bool, tmp_path: Path) -> None:
    write_archive([make_run(50, "local", device=device)], tmp_path)
    text = (tmp_path / f"{DAY}-k80:1:local").read_text()
    assert ("Gres=gpu:k80:1" in text) is is_gpu
