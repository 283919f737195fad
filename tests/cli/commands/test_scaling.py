"""`steptime scaling` as a user meets it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from steptime.analysis.scaling.series import plan_cases
from steptime.core.case import Case
from steptime.core.protocol import preset
from steptime.run.session import plan_hash
from steptime.store.folder import FolderStore

Command = Callable[..., "subprocess.CompletedProcess[str]"]
ASKED = ["scaling", "--workload", "mnist-mlp", "--set", "threads=1"]
TRUTH = {1: 100.0, 2: 104.0, 4: 106.0}  # milliseconds without exchange


@pytest.fixture
def keep_series(
    tmp_path: Path, attempt_of: Callable[..., Any], write: Callable[..., str]
) -> Callable[..., None]:
    """Stores what the command would have measured: six processes of each case, exchanges that cost 6 ms and hide 2."""

    def keep(counts: list[int], kind: str, cpus: int = 4, **more: Any) -> None:
        cases = list(plan_cases(Case(workload="mnist-mlp", threads=1), counts, (kind,)))
        store, plan = FolderStore(tmp_path / "results"), plan_hash(cases, preset("standard"))
        for case in cases:
            for process in range(6):
                milliseconds = TRUTH[case.devices] * case.batch_size / 32 + 4 * (
                    case.exchange == "allreduce"
                )
                times = np.full(60, milliseconds * 1e6 * (1 + 0.001 * (process - 2.5)))
                alone = {"bytes": 400_000, "seconds": [0.006], **more}
                found = {"exchange": alone} if case.exchange == "allreduce" else {}
                told = {**case.to_dict(), "plan": plan, "process": process, "findings": found}
                write(store, attempt_of(times, environment={"cpus": list(range(cpus))}, **told))

    return keep


def test_the_sentence_that_matters_comes_first(
    steptime: Command, keep_series: Callable[..., None]
) -> None:
    keep_series([1, 2, 4], "weak")
    done = steptime(*ASKED, "--devices", "1,2,4", "--kind", "weak", "--predict", "8")
    assert (done.returncode, done.stderr) == (0, "")
    first = done.stdout.splitlines()[0]
    assert first.startswith(
        "4 devices (weak): 3.64× (3.63× … 3.65×), efficiency 91 % (91 % … 91 %); 3.6 % of a step"
    )
    assert first.endswith("×).") and "8 devices would give" in first
    assert "Measured before (--again measures anew), stored in results." in done.stdout


def test_json_is_one_document_with_every_number_and_its_interval(
    steptime: Command, keep_series: Callable[..., None]
) -> None:
    keep_series([1, 2, 4], "weak")
    found = json.loads(steptime(*ASKED, "--devices", "1,2,4", "--kind", "weak", "--json").stdout)
    (series,), failed = found["series"], found["failed"]
    point = series["points"][1]
    assert failed == [] and [p["devices"] for p in series["points"]] == [1, 2, 4]
    assert point["exposed_seconds"]["value"] == pytest.approx(0.004, rel=0.01)
    assert point["overlapped_seconds"]["low"] < 0.002 < point["overlapped_seconds"]["high"]
    assert point["bus_bytes_per_second"]["value"] == pytest.approx(400_000 / 0.006)
    assert {law["name"] for law in series["laws"]} == {"communication", "Gustafson"}


def test_both_tables_fit_a_terminal_and_say_a_shared_unit_once(
    steptime: Command, keep_series: Callable[..., None]
) -> None:
    keep_series([1, 2, 4], "weak", tiny={"bytes": 4, "seconds": [0.0024]})
    lines = steptime(*ASKED, "--devices", "1,2,4", "--kind", "weak").stdout.splitlines()
    speeds, exchange = (number for number, line in enumerate(lines) if line.startswith("devices "))
    assert max(map(len, [*lines[speeds : speeds + 5], *lines[exchange : exchange + 4]])) <= 120
    assert lines[speeds + 4].split()[0] == lines[exchange + 3].split()[0] == "4"
    assert "3.64× (3.63 … 3.65)" in lines[speeds + 4] and "4 ms (" in lines[exchange + 3]


def test_latency_stands_beside_the_link_and_the_rate_without_it_in_the_law(
    steptime: Command, keep_series: Callable[..., None]
) -> None:
    keep_series([1, 2], "weak", tiny={"bytes": 4, "seconds": [0.0024]})
    done = steptime(*ASKED, "--devices", "1,2", "--kind", "weak")
    assert "2.4 ms ±0 %" in done.stdout
    link = "latency 1.2 ms (1.2 ms … 1.2 ms), bandwidth 111.1 MB/s (111.1 MB/s … 111.1 MB/s)"
    assert f"communication, fitted to 2: {link}" in done.stdout


def test_more_ranks_than_cpus_are_marked_and_not_fitted(
    steptime: Command, keep_series: Callable[..., None]
) -> None:
    keep_series([1, 2, 4], "strong", cpus=2)
    done = steptime(*ASKED, "--devices", "1,2,4", "--kind", "strong")
    assert done.stdout.startswith("2 devices (strong): ")
    assert "4 devices: oversubscribed: 4 threads on 2 CPUs" in done.stdout
    assert "Amdahl, fitted to 1, 2:" in done.stdout and "nothing checks it" in done.stdout


def test_a_prediction_may_ask_for_another_bandwidth(
    steptime: Command, keep_series: Callable[..., None]
) -> None:
    keep_series([1, 2], "weak")
    done = steptime(*ASKED, "--devices", "1,2", "--kind", "weak", "--predict", "64,64@100mbit")
    assert "64 devices at 100 Mbit/s: " in done.stdout
    assert (
        done.stdout.count("64 devices") == 4
    )  # the sentence, two by communication, one by Gustafson


@pytest.mark.parametrize(
    "words, said",
    [
        (["--kind", "wek"], "No kind 'wek'. Did you mean 'weak'?"),
        (
            ["--devices", "2"],
            "One number of devices makes no series, found '2': try --devices 1,2.",
        ),
        (
            ["--devices", "1,1"],
            "One number of devices makes no series, found '1,1': try --devices 1,2.",
        ),
        (
            ["--workload", "mnist-mlp", "--set", "exchange=none"],
            "A series has its own exchange, found exchange=none.",
        ),
        (
            ["--workload", "mnist-mlp", "--set", "devices=2"],
            "A series has its own devices, found devices=2. Use --d",
        ),
        (["--devices", "1,x"], "--devices takes whole numbers such as 1,2,4; found '1,x'."),
        (["--predict", "8@fast"], "8,64,64@10gbit; found '8@fast'."),
        (["--predict", "8@0gbit"], "Nothing can be exchanged at '8@0gbit'."),
        (
            ["--devices", "1,3", "--kind", "strong"],
            "A batch of 32 cannot be shared evenly by 3 devices",
        ),
    ],
)
def test_what_can_not_be_asked_is_said_in_a_sentence(
    words: list[str], said: str, steptime: Command
) -> None:
    done = steptime(*ASKED, *words)
    assert done.returncode == 1 and said in done.stderr and "Traceback" not in done.stderr


def test_a_plan_without_a_series_is_refused(steptime: Command, tmp_path: Path) -> None:
    text = '[constants]\nworkload = "mnist-mlp"\ndevices = 2\nexchange = "allreduce"\n'
    (tmp_path / "mine.toml").write_text(text)
    done = steptime("scaling", "mine.toml")
    assert done.returncode == 1 and "Nothing here is a series" in done.stderr


@pytest.mark.live
def test_a_series_is_measured_and_continued(steptime: Command) -> None:
    words = [*ASKED, "--devices", "1,2", "--kind", "weak", "--preset", "single"]
    protocol = {"least_steps": 5, "least_seconds": 0.02, "warmup_steps": 10, "warmup_seconds": 0.02}
    words += [
        word for name, value in protocol.items() for word in ("--set", f"protocol.{name}={value}")
    ]
    done = steptime(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("2 devices (weak): ") and "exchange alone" in done.stdout
    again = json.loads(steptime(*words, "--json").stdout)
    assert [point["devices"] for point in again["series"][0]["points"]] == [1, 2]
