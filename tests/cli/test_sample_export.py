"""`steptime export --samples`: every sample of the journals, neither more nor fewer."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command_line import Command, Process, Snapshot
from factories import make_attempt, make_failed_attempt, make_times, write_journal
from steptime.cli import sample_export
from steptime.core.cause import Cause
from steptime.core.job import Job
from steptime.core.record import Failure
from steptime.formats._samples import SCHEMA
from steptime.store.folder import FolderStore
from steptime.store.journal import close_failed

duckdb = pytest.importorskip("duckdb", reason="the index is not installed: pip install '.[guide]'")

HEAD = ",mean_speed,Mean_Time_Per_Step,speed_uncertainty,Speed_Jitter,gpu_type,num_gpu,staged_from"
TABLE = f"{HEAD}\n0,8732.961728,0.005725434,6.388218371,760.2575007,p100,2,$SCRATCH\n"


@pytest.fixture
def store(tmp_path: Path, fixed_ids: None) -> FolderStore:
    """Two results: one of a device in samples of four steps, one of the host alone."""
    store = FolderStore(tmp_path / "results")
    for process in range(2):
        times = make_times(process)
        facts = {"process": process, "group": 4, "device_ns": [int(time) - 7 for time in times]}
        write_journal(store, make_attempt(times, cut=30, batch_size=8, **facts))
        write_journal(store, make_attempt(make_times(9), cut=10, process=process))
    return store


def journals(store: FolderStore) -> dict[str, list[dict[str, Any]]]:
    """The lines of each journal by the attempt's id, as they lie on the disk."""
    lines = {}
    for path in store.path.glob("journal/*/*/*/*.jsonl"):
        lines[path.stem] = [json.loads(line) for line in path.read_text().splitlines()]
    return lines


def kill_while_writing(store: FolderStore, identifier: str) -> None:
    """Cut a journal after its second line of samples; its parent then ends it as crashed."""
    path = store.journal(identifier)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]) + lines[4][:20])
    begin = json.loads(lines[0])
    fields = {name: begin[name] for name in Job.__dataclass_fields__ if name in begin}
    job = Job.from_dict(fields | {"turns": None})
    close_failed(path, job, Failure(cause=Cause.CRASHED, reason="killed"))


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_samples_sum_up_to_those_of_the_journals(
    steptime: Command, store: FolderStore, tmp_path: Path
) -> None:
    done = steptime("export", "csv", "--samples", "-o", "samples.csv")
    assert done.returncode == 0, done.stderr
    exported: dict[str, Counter[str]] = {}
    for row in read_csv(tmp_path / "samples.csv"):
        sums = exported.setdefault(row["attempt"], Counter())
        assert int(row["start [ns]"]) == sums["host"] and int(row["sample"]) == sums["samples"]
        sums["samples"] += 1
        sums["host"] += int(row["host_time [ns]"])
        sums["device"] += int(row["device_time [ns]"] or 0)
        sums["steps"] += int(row["steps [count]"])
        sums["warmup"] += row["warmup"] == "true"
    written = {}
    for attempt, lines in journals(store).items():
        blocks = [line for line in lines if line["line"] == "sample"]
        facts = lines[-1]["measurement"]
        count = sum(block["samples"] for block in blocks)
        written[attempt] = {
            "samples": count,
            "host": sum(block["host_ns"] for block in blocks),
            "device": sum(sum(block["device_ns"] or ()) for block in blocks),
            "steps": facts["group"] * count,
            "warmup": facts["cut"],
        }
    assert len(written) == 4 and exported == written


def test_samples_name_their_result_and_process(
    steptime: Command, store: FolderStore, tmp_path: Path
) -> None:
    steptime("export", "csv", "--samples", "-o", "samples.csv")
    steptime("export", "csv", "-o", "results.csv")
    rows = read_csv(tmp_path / "samples.csv")
    results = {row["id"]: row for row in read_csv(tmp_path / "results.csv")}
    assert {row["result"] for row in rows} == set(results)
    for attempt, (begin, *_) in journals(store).items():
        (found,) = {
            (row["session"], row["process"], row["status"], results[row["result"]]["session"])
            for row in rows
            if row["attempt"] == attempt
        }
        assert found == (begin["session"], str(begin["process"]), "ok", begin["session"])


def test_samples_are_the_same_in_parquet(
    steptime: Command, store: FolderStore, tmp_path: Path
) -> None:
    for name in ("csv", "parquet"):
        done = steptime("export", name, "--samples", "-o", f"samples.{name}")
        assert done.returncode == 0, done.stderr
    head, *lines = csv.reader((tmp_path / "samples.csv").read_text().splitlines())
    with duckdb.connect() as database:
        path = str(tmp_path / "samples.parquet")
        answer = database.execute("SELECT * FROM read_parquet(?)", [path])
        names = [column[0] for column in answer.description]
        rows = answer.fetchall()
        facts = "SELECT decode(key), decode(value) FROM parquet_kv_metadata(?)"
        metadata = dict(database.execute(facts, [path]).fetchall())
    assert [title.partition(" [")[0] for title in head] == names
    assert [[as_cell(value) for value in row] for row in rows] == lines
    units = {title.split(" [")[0]: title.split(" [")[1][:-1] for title in head if " [" in title}
    assert metadata["schema"] == SCHEMA and json.loads(metadata["units"]) == units


def as_cell(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def test_samples_of_a_failed_attempt_have_its_cause_as_status(
    steptime: Command, store: FolderStore, tmp_path: Path
) -> None:
    failed = max(journals(store))
    samples = [line for line in journals(store)[failed] if line["line"] == "sample"]
    kill_while_writing(store, failed)
    done = steptime("export", "csv", "--samples", "-o", "samples.csv")
    assert done.returncode == 0, done.stderr
    rows = [row for row in read_csv(tmp_path / "samples.csv") if row["attempt"] == failed]
    deltas = [*samples[0]["deltas"], *samples[1]["deltas"]]
    assert [int(row["host_time [ns]"]) for row in rows] == deltas
    # How many steps they are, and which of them are warm-up, was in the line that is missing.
    (others,) = {(row["status"], row["steps [count]"], row["warmup"]) for row in rows}
    assert others == ("crashed", "", "")


def test_samples_of_a_process_that_was_set_aside_say_why(
    steptime: Command, store: FolderStore, tmp_path: Path
) -> None:
    for process in range(2, 5):
        swap_ins = 3 if process == 4 else 0
        write_journal(store, make_attempt(make_times(9), process=process, swap_ins=swap_ins))
    steptime("export", "csv", "--samples", "-o", "samples.csv")
    rows = read_csv(tmp_path / "samples.csv")
    reasons = {(row["process"], row["set_aside"]) for row in rows if row["set_aside"]}
    assert reasons == {("4", "30 pages were read back from swap")}


def test_samples_come_from_all_batches_of_results(
    steptime: Command, store: FolderStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steptime("export", "csv", "--samples", "-o", "at-once.csv")
    monkeypatch.setattr(sample_export, "BATCH", 1)
    steptime("export", "csv", "--samples", "-o", "single.csv")
    texts = [(tmp_path / name).read_text() for name in ("at-once.csv", "single.csv")]
    assert texts[0] == texts[1] and texts[0].count("\n") == 1 + 4 * 200


def test_samples_of_other_results_are_counted_as_left_out(
    steptime: Command,
    store: FolderStore,
    keep: Callable[[str, str], None],
    tmp_path: Path,
    snapshot: Snapshot,
) -> None:
    keep("2018-06-05:TF_PERFORMANCE_RESULTS.csv", TABLE)
    write_journal(store, make_failed_attempt(Cause.OUT_OF_MEMORY, session="other"))
    query = "status=ok&status=out_of_memory"
    done = steptime("export", "parquet", query, "--samples", "-o", ".")
    assert done.returncode == 0 and (tmp_path / "samples.parquet").is_file(), done.stderr
    snapshot("export-samples", done.stdout)
    document = json.loads(steptime("export", "csv", "--samples", "-o", "s.csv", "--json").stdout)
    assert document == {
        "format": "csv",
        "schema": SCHEMA,
        "path": "s.csv",
        "samples": 800,
        "results": 2,
        "left_out": {sample_export.IMPORTED: 1},
    }


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("csv", "model=other"), "No results match this query in results: 'model=other'."),
        (("csv", "source=psc"), "No result of this query has samples: 1 imported without samples."),
        (
            ("parquet", "source=psc"),
            "No result of this query has samples: 1 imported without samples.",
        ),
        (("psc",), "Only csv and parquet hold samples; found 'psc'."),
    ],
)
def test_samples_absent_are_an_error_without_a_file(
    steptime: Command,
    keep: Callable[[str, str], None],
    arguments: tuple[str, ...],
    sentence: str,
    tmp_path: Path,
) -> None:
    keep("2018-06-05:TF_PERFORMANCE_RESULTS.csv", TABLE)
    before = set(tmp_path.iterdir())
    done = steptime("export", *arguments, "--samples", "-o", "samples")
    assert done.returncode == 1 and sentence in done.stderr
    assert set(tmp_path.iterdir()) == before


@pytest.mark.usefixtures("store")
def test_samples_on_stdout_are_the_table_alone(steptime_process: Process, tmp_path: Path) -> None:
    with steptime_process("export", "csv", "--samples", "-o", "-") as process:
        printed, told = process.communicate()
    assert process.returncode == 0 and printed.startswith("result,session,case,attempt,")
    assert printed.count("\n") == 801 and told == f"-: 800 samples of 2 results, as {SCHEMA}.\n"
