"""`steptime export`, as a user meets it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]
TABLE = """,mean_speed,Mean_Time_Per_Step,speed_uncertainty,Speed_Jitter,gpu_type,num_gpu,staged_from
0,8732.961728,0.005725434,6.388218371,760.2575007,p100,2,$SCRATCH
1,5250.901566,0.009522174,0.734560314,65.77123005,k80,2,$SCRATCH
"""


@pytest.fixture
def imported(steptime: Command, keep: Callable[[str, str], None]) -> Command:
    keep("2018-06-05:TF_PERFORMANCE_RESULTS.csv", TABLE)
    return steptime


def test_what_is_written_imports_again_and_what_is_lost_is_told(
    imported: Command, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    done = imported("export", "psc", "device=k80", "-o", "out")
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "out").iterdir()
    assert done.stdout.startswith(
        f"out/{path.name}: 1 results as PSC Deep MNIST results, 1 file.\n"
    )
    assert (
        path.read_text().splitlines()[1]
        == "0,5250.901566,0.009522174,0.734560314,65.77123005,k80,2,$SCRATCH"
    )


def test_absent_values_are_counted_by_name(imported: Command, tmp_path: Path) -> None:
    done = imported("export", "mlperf_training_log", "-o", "logs", "--json")
    told = json.loads(done.stdout)
    assert told["rows"] == 2 and told["absent"]["step_time"] == 2 and told["changed"]["unit"] == 2
    assert all((tmp_path / path).is_file() for path in told["paths"])


def test_many_files_do_not_go_into_one(imported: Command, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = imported("export", "mlperf_training_log", "-o", "file")
    assert (
        done.returncode == 1
        and done.stderr == "error: 4 files are to be written: file must be a folder.\n"
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("cvs",), "format to write 'cvs'"),
        (("dawnbench",), "neither a latency of inference"),
        (("csv", "model=other"), "No result fits 'model=other' and csv in results."),
    ],
)
def test_what_can_not_be_written_is_a_sentence(
    imported: Command, words: tuple[str, ...], sentence: str
) -> None:
    done = imported("export", *words, "-o", "x")
    assert done.returncode == 1 and sentence in done.stderr and "Traceback" not in done.stderr
