"""`steptime export`: files of other tools, and what those cannot hold."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import Command, Process, Snapshot
from steptime.core.case import Case

pytest.importorskip("duckdb", reason="the index is not installed: pip install '.[guide]'")
HEAD = ",mean_speed,Mean_Time_Per_Step,speed_uncertainty,Speed_Jitter,gpu_type,num_gpu,staged_from"
TABLE = f"""{HEAD}
0,8732.961728,0.005725434,6.388218371,760.2575007,p100,2,$SCRATCH
1,5250.901566,0.009522174,0.734560314,65.77123005,k80,2,$SCRATCH
"""


@pytest.fixture
def imported(steptime: Command, keep: Callable[[str, str], None]) -> Command:
    keep("2018-06-05:TF_PERFORMANCE_RESULTS.csv", TABLE)
    return steptime


def test_export_writes_a_file_that_imports_again(
    imported: Command, tmp_path: Path, snapshot: Snapshot
) -> None:
    (tmp_path / "out").mkdir()
    done = imported("export", "psc", "device=k80", "-o", "out")
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "out").iterdir()
    row = "0,5250.901566,0.009522174,0.734560314,65.77123005,k80,2,$SCRATCH"
    assert path.read_text().splitlines()[1] == row
    snapshot("export", done.stdout)


@pytest.mark.usefixtures("imported")
def test_export_to_stdout_prints_the_file_alone(steptime_process: Process) -> None:
    with steptime_process("export", "csv", "-o", "-") as process:
        printed, told = process.communicate()
    assert process.returncode == 0 and printed.startswith("id,started,")
    assert "1 file" in told


def test_export_json_counts_absent_values_by_name(imported: Command, tmp_path: Path) -> None:
    done = imported("export", "mlperf_training_log", "-o", "logs", "--json")
    document = json.loads(done.stdout)
    assert document["rows"] == 2 and document["absent"]["step_time"] == 2
    assert document["changed"]["unit"] == 2
    assert all((tmp_path / path).is_file() for path in document["paths"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("mlperf_training_log",), "The export has 4 files: file must be a folder."),
        (("dawnbench",), "No result can be written as dawnbench: "),
        (("csv", "model=other"), "No results match this query in results: 'model=other'."),
    ],
)
def test_export_says_what_cannot_be_written(
    imported: Command, arguments: tuple[str, ...], sentence: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    done = imported("export", *arguments, "-o", "file")
    assert done.returncode == 1 and sentence in done.stderr


def test_export_of_a_cpu_run_has_no_accelerators(
    steptime: Command, store_session: Callable[..., list[str]], tmp_path: Path
) -> None:
    settings = {"workload": "mnist-mlp", "devices": 2, "exchange": "independent"}
    store_session([Case(**settings)], machine={"cpu": "A processor", "sockets": 1})
    done = steptime("export", "mlperf_training_log", "-o", "logs")
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "logs").rglob("systems/*.json")
    description = json.loads(path.read_text())
    assert description["accelerators_per_node"] == 0
    assert description["host_processor_model_name"] == "A processor"
    assert description["host_processors_per_node"] == 1


def test_export_columns_are_the_same_for_other_results(
    imported: Command, store_session: Callable[..., list[str]], tmp_path: Path
) -> None:
    store_session([Case(workload="mnist-mlp")])
    heads = []
    for query in ("source=psc", "source=steptime"):
        done = imported("export", "csv", query, "-o", "rows.csv")
        assert done.returncode == 0, done.stderr
        heads.append((tmp_path / "rows.csv").read_text().splitlines()[0])
    assert heads[0] == heads[1]
    assert "step_time_low [s]" in heads[0] and heads[0].endswith("steps [count]")


def test_export_has_flags_and_their_evidence(
    steptime: Command, store_session: Callable[..., list[str]], tmp_path: Path
) -> None:
    store_session([Case(workload="mnist-mlp")], processes=1)
    done = steptime("export", "csv", "-o", "rows.csv")
    assert done.returncode == 0, done.stderr
    with (tmp_path / "rows.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert "one_process" in row["flags"].split()
    assert "one_process (limits): " in row["warnings"]
    assert row["processes [count]"] == "1" and row["interval"]


def test_export_keeps_the_details_of_a_table_that_was_imported(
    steptime: Command, store_session: Callable[..., list[str]], tmp_path: Path
) -> None:
    store_session([Case(workload="mnist-mlp")], processes=1)
    steptime("export", "csv", "-o", "first.csv")
    (tmp_path / "results").rename(tmp_path / "other")
    assert steptime("import", "first.csv").returncode == 0
    steptime("export", "csv", "-o", "second.csv")
    rows = []
    for name in ("first.csv", "second.csv"):
        with (tmp_path / name).open() as file:
            rows += csv.DictReader(file)
    for name in ("flags", "warnings", "interval", "processes [count]", "steps [count]"):
        assert rows[0][name] == rows[1][name] != "", name
