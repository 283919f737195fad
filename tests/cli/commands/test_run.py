"""`steptime run` as a user meets it: tables, JSON, failures, continuing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., "subprocess.CompletedProcess[str]"]
CALM = ["run", "--workload", "mnist-mlp", "--set", "framework=calm"]


def test_a_dry_run_lists_cases_exclusions_and_time_and_runs_nothing(
    steptime: Command, tmp_path: Path
) -> None:
    done = steptime("run", "--dry-run")
    assert done.returncode == 0 and not list(tmp_path.iterdir())
    assert "cases, about" in done.stdout
    assert re.search(r"excluded +a minute is short", done.stdout)
    assert "all: mode eager · device " in done.stdout and "Times are guessed" in done.stdout


def test_a_dry_run_in_json_has_the_cases_with_their_settings(steptime: Command) -> None:
    found = json.loads(
        steptime("run", "--workload", "lenet5", "--batch-size", "1,8", "--dry-run", "--json").stdout
    )
    assert [entry["case"]["batch_size"] for entry in found["cases"]] == [1, 8]
    assert all(0 < entry["seconds"][0] <= entry["seconds"][1] for entry in found["cases"])


def test_a_case_without_a_network_is_told_the_flag(steptime: Command) -> None:
    done = steptime("run", "--batch-size", "4")
    assert (done.returncode, done.stderr) == (
        1,
        "error: A case needs a network: --workload resnet50, for example.\n",
    )


def test_a_wrong_plan_is_refused_with_file_and_line(steptime: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('[constants]\nworkload = "lenet5"\nphase = "trainning"\n')
    done = steptime("run", "mine.toml")
    assert done.returncode == 1
    assert (
        done.stderr == "error: mine.toml: line 3: No phase 'trainning'. Did you mean 'training'?\n"
    )


EXCLUDED = '[constants]\nworkload = "lenet5"\n[[exclude]]\nwhen = { workload = "lenet5" }\nreason = "too small"\n'


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_when_every_case_is_excluded_this_is_said_with_the_reason(
    more: list[str], steptime: Command, tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text(EXCLUDED)
    done = steptime("run", "mine.toml", *more)
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        "every case is excluded, nothing is left to run." in done.stdout
        and "too small" in done.stdout
    )


def test_a_dry_run_refuses_a_network_that_its_file_does_not_hold(
    steptime: Command, tmp_path: Path
) -> None:
    (tmp_path / "nets.py").write_text("")
    done = steptime("run", "--workload", "nets.py:wide", "--dry-run")
    assert done.returncode == 1 and "nets.py: No network 'wide'" in done.stderr


@pytest.mark.parametrize("command", [["run", "--dry-run", "--json"], ["compare", "0198", "0199"]])
def test_a_damaged_journal_is_told_beside_the_result(
    command: list[str], steptime: Command, tmp_path: Path
) -> None:
    folder = tmp_path / "results/journal/2026/01/01"
    folder.mkdir(parents=True)
    (folder / "x.jsonl").write_text("{}\n{}\n")
    done = steptime(*command)
    assert done.stderr.startswith("note: results/journal/2026/01/01/x.jsonl: not readable")
    assert "note" not in done.stdout.partition('"notes"')[0]


@pytest.mark.live
@pytest.mark.usefixtures("misbehaving")
class TestMeasuring:
    def test_one_case_ends_in_a_sentence_and_its_numbers(
        self, steptime: Command, short_flags: list[str]
    ) -> None:
        done = steptime(*CALM, *short_flags)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("mnist-mlp training calm eager cpu fp32 batch 32: ")
        assert "typical step" in done.stdout and "2 processes" in done.stdout

    def test_json_is_one_document_with_results_and_provenance(
        self, steptime: Command, short_flags: list[str]
    ) -> None:
        done = steptime(*CALM, *short_flags, "--json")
        found = json.loads(done.stdout)
        record = found["records"][0]
        assert record["status"] == "ok" and len(record["attempts"]) == 2
        assert record["result"]["typical_time_seconds"]["value"] > 0.0005
        assert record["result"]["session"] == found["session"]
        assert record["machine"]["fingerprint"] and record["software"]["misbehaving"] == "1"

    def test_what_is_measured_is_not_measured_twice(
        self, steptime: Command, short_flags: list[str]
    ) -> None:
        first, second, third = (
            steptime(*CALM, *short_flags, *more, "--json") for more in ([], [], ["--again"])
        )
        assert first.stdout == second.stdout
        assert json.loads(first.stdout)["session"] != json.loads(third.stdout)["session"]

    def test_a_failed_case_is_told_with_cause_and_reason_and_exits_4(
        self, steptime: Command, short_flags: list[str]
    ) -> None:
        done = steptime(
            "run", "--workload", "mnist-mlp", "--set", "framework=calm,segfault", *short_flags
        )
        assert done.returncode == 4 and "1 of 2 cases measured" in done.stdout
        assert (
            "failed: mnist-mlp segfault: crashed. The worker was killed by SIGSEGV." in done.stdout
        )

    def test_when_every_case_fails_the_exit_code_is_3(
        self, steptime: Command, short_flags: list[str]
    ) -> None:
        done = steptime(*CALM, "--set", "precision=fp64", *short_flags, "--json")
        record = json.loads(done.stdout)["records"][0]
        assert done.returncode == 3
        assert record["failure"] == {
            "cause": "unsupported",
            "reason": "precision fp64: not in this framework",
            "output": "",
        }

    def test_an_estimate_comes_from_what_the_case_took_before(
        self, steptime: Command, short_flags: list[str]
    ) -> None:
        before = json.loads(steptime(*CALM, "--dry-run", "--json").stdout)["cases"][0]["seconds"][0]
        steptime(*CALM, *short_flags)
        after = json.loads(steptime(*CALM, "--dry-run", "--json").stdout)["cases"][0]["seconds"][0]
        assert after != before

    def test_an_interrupt_exits_130_and_the_same_command_continues(
        self, tmp_path: Path, steptime: Command, short_flags: list[str]
    ) -> None:
        command = [
            *CALM,
            *short_flags,
            "--set",
            "protocol.processes_least=4",
            "--set",
            "protocol.processes_most=4",
        ]
        with subprocess.Popen(
            [sys.executable, "-P", "-m", "steptime", *command],
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            while not list(tmp_path.glob("results/journal/*/*/*/*.jsonl")):
                os.sched_yield()
            process.send_signal(signal.SIGINT)
            assert "the same command continues" in process.communicate()[1]
        assert process.returncode == 130
        found = json.loads(steptime(*command, "--json").stdout)["records"][0]
        assert found["status"] == "ok" and found["result"]["processes"] == 4
        assert len(found["attempts"]) == 5
