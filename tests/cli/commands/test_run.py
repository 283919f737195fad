"""`steptime run`: dry runs, tables, JSON, failures, continuing."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import Command, Process, Snapshot
from steptime.cli.request import read_plan
from steptime.core.case import Case
from steptime.core.protocol import preset
from steptime.run.session import plan_hash
from steptime.store.machines import write_machine

QUICK = preset("quick")
CALM = ["run", "--workload", "mnist-mlp", "--set", "framework=calm"]
EXCLUDED = """
[constants]
workload = "lenet5"
[[exclude]]
when = { workload = "lenet5" }
reason = "too small"
"""


@pytest.mark.parametrize("columns", [80, 120])
def test_dry_run_of_the_tour(
    columns: int, steptime: Command, snapshot: Snapshot, tmp_path: Path
) -> None:
    done = steptime("run", "--dry-run", "--set", "device=cpu", "tour", columns=columns)
    assert done.returncode == 0 and not list(tmp_path.iterdir())
    # The guess depends on the networks' sizes alone.
    snapshot(f"run-dry-run-{columns}", re.sub(r"about \d+ s", "about <time>", done.stdout))


def test_dry_run_json_has_the_cases_with_their_settings(steptime: Command) -> None:
    flags = ["--workload", "lenet5", "--batch-size", "1,8", "--dry-run", "--json"]
    document = json.loads(steptime("run", *flags).stdout)
    assert [entry["case"]["batch_size"] for entry in document["cases"]] == [1, 8]
    assert all(0 < entry["seconds"][0] <= entry["seconds"][1] for entry in document["cases"])
    assert {entry["source"] for entry in document["cases"]} == {"guess"}


def test_run_without_arguments_is_the_tour(steptime: Command) -> None:
    document = json.loads(steptime("run", "--dry-run", "--json").stdout)
    assert document["name"] == "tour" and len(document["cases"]) == 3


@pytest.mark.parametrize("columns", [80, 100, 120])
def test_table_of_results(
    columns: int, steptime: Command, snapshot: Snapshot, store_session: Callable[..., list[str]]
) -> None:
    cases = [Case(workload="mnist-mlp", threads=1, batch_size=size) for size in (1, 8)]
    store_session(cases, plan=plan_hash(cases, QUICK), protocol=QUICK)
    flags = ["--workload", "mnist-mlp", "--batch-size", "1,8", "--preset", "quick"]
    done = steptime("run", *flags, "--set", "threads=1", columns=columns)
    assert done.returncode == 0
    snapshot(f"run-{columns}", done.stdout)


@pytest.mark.parametrize("columns", [80, 100])
def test_tour_ends_with_a_headline_the_table_and_what_to_do_next(
    columns: int, steptime: Command, snapshot: Snapshot, store_session: Callable[..., list[str]]
) -> None:
    plan = read_plan("tour", {})
    facts = {"plan": plan_hash(plan.cases, plan.protocol), "protocol": plan.protocol}
    store_session(plan.cases, processes=6, **facts)
    done = steptime("run", columns=columns)
    assert done.returncode == 0
    snapshot(f"run-tour-{columns}", done.stdout)


def test_a_result_that_exists_is_not_measured_again(
    steptime: Command, store_session: Callable[..., list[str]]
) -> None:
    cases = [Case(workload="mnist-mlp", threads=1)]
    ids = store_session(cases, plan=plan_hash(cases, QUICK), protocol=QUICK)
    flags = ["--workload", "mnist-mlp", "--set", "threads=1", "--preset", "quick"]
    document = json.loads(steptime("run", *flags, "--json").stdout)
    assert document["records"][0]["attempts"][0] == ids[0]


@pytest.mark.parametrize("flags", [[], ["--dry-run"]])
def test_a_plan_that_excludes_every_case_says_so(
    flags: list[str], steptime: Command, tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text(EXCLUDED)
    done = steptime("run", "mine.toml", *flags)
    assert (done.returncode, done.stderr) == (1, "")
    assert "every case is excluded, nothing is left to run." in done.stdout
    assert "too small" in done.stdout


def test_dry_run_json_without_cases_is_no_success(steptime: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(EXCLUDED)
    done = steptime("run", "mine.toml", "--dry-run", "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["cases"]) == (1, []) and document["excluded"]


def test_run_refuses_a_number_of_thousands_of_digits(steptime: Command) -> None:
    done = steptime("run", "--workload", "mnist-mlp", "--batch-size", "9" * 5000, "--dry-run")
    assert done.returncode == 1 and "a number of 5,000 digits" in done.stderr


def test_dry_run_says_which_file_it_would_load_and_runs_none(
    steptime: Command, tmp_path: Path
) -> None:
    (tmp_path / "nets.py").write_text("open('ran', 'w')")
    done = steptime("run", "--workload", "nets.py:wide", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "Would load and run: nets.py:wide." in done.stdout and "time unknown" in done.stdout
    document = json.loads(
        steptime("run", "--workload", "nets.py:wide", "--dry-run", "--json").stdout
    )
    assert document["not_loaded"] == ["nets.py:wide"]
    assert document["cases"][0]["seconds"] is None
    assert not (tmp_path / "ran").exists()


def test_dry_run_names_a_missing_file(steptime: Command) -> None:
    done = steptime("run", "--workload", "nets.py:wide", "--dry-run")
    assert done.returncode == 1 and "No file 'nets.py'" in done.stderr


@pytest.mark.parametrize("command", [["run", "--dry-run", "--json"], ["compare", "0198", "0199"]])
def test_a_damaged_journal_is_reported_on_stderr(
    command: list[str], steptime: Command, tmp_path: Path
) -> None:
    folder = tmp_path / "results/journal/2026/01/01"
    folder.mkdir(parents=True)
    (folder / "x.jsonl").write_text("{}\n{}\n")
    done = steptime(*command)
    assert done.stderr.startswith("note: results/journal/2026/01/01/x.jsonl: set aside")
    assert "note" not in done.stdout.partition('"notes"')[0]


@pytest.mark.live
@pytest.mark.usefixtures("misbehaving")
class TestMeasuring:
    def test_one_case_ends_in_a_headline_and_its_numbers(
        self, steptime: Command, short_flags: list[str]
    ) -> None:
        done = steptime(*CALM, *short_flags)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("mnist-mlp training calm eager cpu fp32 batch 32: ")
        assert "typical step" in done.stdout and "2 processes" in done.stdout

    def test_json_is_one_document_with_results_and_provenance(
        self, steptime: Command, short_flags: list[str]
    ) -> None:
        document = json.loads(steptime(*CALM, *short_flags, "--json").stdout)
        (record,) = document["records"]
        assert record["status"] == "ok" and len(record["attempts"]) == 2
        assert record["result"]["typical_time_seconds"]["value"] > 0.0005
        assert record["result"]["session"] == document["session"]
        assert record["machine"]["fingerprint"] and record["software"]["misbehaving"] == "1"

    def test_a_step_that_does_nothing_is_flagged_on_a_fresh_store(
        self, steptime: Command, short_flags: list[str]
    ) -> None:
        lying = ["run", "--workload", "resnet50", "--set", "framework=lies", *short_flags]
        document = json.loads(steptime(*lying, "--json").stdout)
        result = document["records"][0]["result"]
        levels = {flag["name"]: flag["level"] for flag in result["flags"]}
        assert levels["implausible"] == "invalid" and result["grade"] == "X"
        assert "grade X" in result["headline"] and "implausible" in result["headline"]
        done = steptime(*lying)
        assert "grade X (implausible" in done.stdout.splitlines()[0]
        assert "PFLOP/s at the typical step, which is implausible" in done.stdout

    def test_a_step_beyond_the_stored_peak_is_flagged(
        self, steptime: Command, short_flags: list[str], tmp_path: Path
    ) -> None:
        """Half a millisecond for a batch of mnist-mlp is fast, but not in theory."""
        facts = json.loads(steptime("machine", "--no-peaks", "--json").stdout)
        rates = {"fp32": {"flops_per_second": 1e6}}
        peaks = {"cpu": {"peaks": rates, "threads": 1}}
        write_machine(tmp_path / "results", {"machine": facts["machine"], "peaks": peaks})
        document = json.loads(steptime(*CALM, *short_flags, "--json").stdout)
        (record,) = document["records"]
        evidence = {flag["name"]: flag["evidence"] for flag in record["result"]["flags"]}
        assert "measured to reach 1 MFLOP/s" in evidence["implausible"]
        stored = record["machine"]["peaks"]["cpu"]
        assert stored == {"flops_per_second": {"fp32": 1e6}, "threads": 1}

    def test_again_measures_a_second_session(
        self, steptime: Command, short_flags: list[str]
    ) -> None:
        first = json.loads(steptime(*CALM, *short_flags, "--json").stdout)
        second = json.loads(steptime(*CALM, *short_flags, "--again", "--json").stdout)
        assert first["session"] != second["session"]

    def test_a_failed_case_is_shown_with_its_cause_and_exits_4(
        self, steptime: Command, short_flags: list[str]
    ) -> None:
        flags = ["--workload", "mnist-mlp", "--set", "framework=calm,segfault"]
        done = steptime("run", *flags, *short_flags)
        assert done.returncode == 4 and "1 of 2 cases measured" in done.stdout
        failure = "failed: mnist-mlp segfault: crashed. The worker was killed by SIGSEGV."
        assert failure in done.stdout

    def test_exit_code_is_3_if_every_case_fails(
        self, steptime: Command, short_flags: list[str]
    ) -> None:
        done = steptime(*CALM, "--set", "precision=fp64", *short_flags, "--json")
        failure = json.loads(done.stdout)["records"][0]["failure"]
        assert done.returncode == 3
        assert (failure["cause"], failure["output"]) == ("unsupported", "")
        assert failure["reason"] == "precision fp64: not in this framework"

    def test_estimate_uses_the_times_of_earlier_runs(
        self, steptime: Command, short_flags: list[str]
    ) -> None:
        steptime(*CALM, *short_flags)
        (entry,) = json.loads(steptime(*CALM, "--dry-run", "--json").stdout)["cases"]
        assert entry["source"] != "guess"

    def test_an_interrupt_exits_130_and_the_same_command_continues(
        self,
        tmp_path: Path,
        steptime: Command,
        steptime_process: Process,
        short_flags: list[str],
    ) -> None:
        counts = ["--set", "protocol.processes_least=4", "--set", "protocol.processes_most=4"]
        command = [*CALM, *short_flags, *counts]
        with steptime_process(*command) as process:
            while not list(tmp_path.glob("results/journal/*/*/*/*.jsonl")):
                os.sched_yield()
            process.send_signal(signal.SIGINT)
            assert "run the same command to continue" in process.communicate()[1]
        assert process.returncode == 130
        (record,) = json.loads(steptime(*command, "--json").stdout)["records"]
        assert record["status"] == "ok" and record["result"]["processes"] == 4
        assert len(record["attempts"]) == 5
