"""Results as text and as JSON, from fake records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from command_line import Snapshot
from factories import make_attempt, make_times
from steptime.cli.render import results
from steptime.core.cause import Cause
from steptime.core.protocol import preset
from steptime.core.record import Attempt, Failure, Record


def measured(milliseconds: float, *, processes: int = 3, **settings: Any) -> Record:
    attempts = []
    for process in range(processes):
        times = make_times(process, centre_ns=milliseconds * 1e6, steps=100)
        facts = {"protocol": preset("quick"), "process": process, "id": f"0000000{process}"}
        attempts.append(make_attempt(times, **facts, **settings))
    return Record(attempts=tuple(attempts))


def failed_attempt(cause: Cause, reason: str, output: str = "", **settings: Any) -> Attempt:
    failure = Failure(cause=cause, reason=reason, output=output)
    return make_attempt([10**6] * 40, measurement=None, failure=failure, **settings)


def failed(**settings: Any) -> Record:
    reason = "64 GiB needed."
    return Record(
        attempts=(failed_attempt(Cause.OUT_OF_MEMORY, reason, "Traceback …", **settings),)
    )


def with_a_crash(record: Record) -> Record:
    crash = failed_attempt(Cause.CRASHED, "The worker was killed by SIGKILL.", process=3)
    return Record(attempts=(*record.attempts, crash))


def with_facts(record: Record, **facts: Any) -> Record:
    return Record(attempts=tuple(replace(attempt, **facts) for attempt in record.attempts))


@pytest.mark.parametrize(
    ("records", "verb"),
    [
        ([measured(1)], "Measured"),
        ([failed()], "Tried"),
        ([measured(1), failed()], "Measured or tried"),
    ],
)
def test_show_stored_distinguishes_measured_from_tried(
    records: list[Record], verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    results.show_stored(records, Path("here"), fresh=False)
    assert capsys.readouterr().out.strip().startswith(f"{verb} before, stored in here;")
    results.show_stored(records, Path("here"), fresh=True)
    assert capsys.readouterr().out.strip() == "Stored in here."


def test_table_with_failures_frameworks_and_compiled_modes(
    capsys: pytest.CaptureFixture[str], snapshot: Snapshot
) -> None:
    records = [
        measured(4, batch_size=8, mode="compiled"),
        with_a_crash(measured(2, batch_size=8)),
        measured(3, batch_size=8, framework="jax", mode="compiled"),
        failed(batch_size=4096),
    ]
    results.show(records)
    snapshot("results-table", capsys.readouterr().out)


def test_headline_names_equal_times_once(capsys: pytest.CaptureFixture[str]) -> None:
    results.show([measured(4, batch_size=8), measured(4, batch_size=1)])
    headline = capsys.readouterr().out.splitlines()[0]
    assert headline.startswith("2 of 2 cases measured: a step takes 4.") and "in each" in headline


def test_headline_says_that_everything_failed(capsys: pytest.CaptureFixture[str]) -> None:
    results.show([failed(), failed(batch_size=1)])
    assert capsys.readouterr().out.startswith("Nothing was measured: all 2 cases failed.")


def test_spread_beyond_a_factor_of_two_is_a_ratio(capsys: pytest.CaptureFixture[str]) -> None:
    attempts = measured(1).attempts[:2] + measured(5).attempts[:1]
    results.show([Record(attempts=attempts)])
    assert "per step ×5 (3 processes)" in capsys.readouterr().out


def test_document_holds_result_or_failure() -> None:
    good, bad = results.to_document([measured(4), failed(batch_size=64)])["records"]
    assert good["result"]["grade"] == "C" and "failure" not in good
    assert bad["failure"] == {
        "cause": "out_of_memory",
        "reason": "64 GiB needed.",
        "output": "Traceback …",
    }
    assert bad["status"] == "out_of_memory" and "result" not in bad


def test_document_of_a_measured_case_has_its_failed_processes() -> None:
    entry = results.to_document([with_a_crash(measured(4))])["records"][0]
    reason = "The worker was killed by SIGKILL."
    assert entry["status"] == "ok"
    assert entry["failures"] == [{"cause": "crashed", "reason": reason}]


def test_document_labels_rates_with_unit_and_devices() -> None:
    entry = results.to_document([measured(4, batch_size=8)])["records"][0]
    throughput = entry["result"]["throughput"]
    assert (throughput["unit"], throughput["devices"]) == ("images", 1)
    assert throughput["per_device"] == throughput["aggregate"]
    assert throughput["aggregate"]["images"]["value"] == pytest.approx(32 / 0.004, rel=0.02)


def test_a_translation_has_rates_of_sentences_and_tokens(
    capsys: pytest.CaptureFixture[str],
) -> None:
    units = {"sentences": 8, "source_tokens": 80, "target_tokens": 160}
    network = {"unit": "sentences", "units_per_step": units, "fingerprint": "f"}
    results.show([with_facts(measured(4), network=network)])
    shown = capsys.readouterr().out
    assert "sentences/s, " in shown and "source tokens/s, " in shown and "target tokens/s" in shown


def test_accuracy_loss_is_in_the_row_and_in_the_document(
    capsys: pytest.CaptureFixture[str],
) -> None:
    loss = {
        "largest_logit_error": 0.25,
        "largest_relative_error": 0.5,
        "broken_positions": 0,
        "top1_agreement": 0.75,
        "task": None,
    }
    low = with_facts(measured(4, precision="bf16"), findings={"accuracy": loss})
    records = [low, measured(8)]
    entries = results.to_document(records)["records"]
    assert (entries[0]["accuracy"], entries[1]["accuracy"]) == (loss, None)
    results.show(records)
    assert "75.00 %" in capsys.readouterr().out


def test_details_of_ranks(capsys: pytest.CaptureFixture[str], snapshot: Snapshot) -> None:
    exchange = {
        "backend": "gloo",
        "ranks": 2,
        "bytes": 4_000_000,
        "seconds": [0.002, 0.004],
        "bus_bytes_per_second": 1.3e9,
        "latency_seconds": {"value": 1e-4, "low": 9e-5, "high": 1.2e-4},
    }
    record = measured(4, processes=1, exchange="allreduce", devices=2)
    results.show([with_facts(record, findings={"exchange": exchange})])
    snapshot("results-ranks", capsys.readouterr().out)


LYING = {"peaks": {"cpu": {"flops_per_second": {"fp32": 1.0}, "threads": 1}}}


def test_headline_leaves_out_results_that_are_not_valid(
    capsys: pytest.CaptureFixture[str],
) -> None:
    records = [measured(1, batch_size=1, machine=LYING), measured(2, batch_size=8)]
    results.show([*records, measured(3, batch_size=16)])
    headline = capsys.readouterr().out.splitlines()[0]
    assert headline.startswith("3 of 3 cases measured, 2 of them valid: a step takes from 2")
    results.show([records[0], records[0]])
    assert "2 of 2 cases measured, none of them valid." in capsys.readouterr().out
