"""Records as people read them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from factories import make_attempt
from steptime.cli.render import results
from steptime.core.cause import Cause
from steptime.core.protocol import preset
from steptime.core.record import Attempt, Failure, Record


def make_stored(process: int, step_ns: int, **settings: object) -> Attempt:
    """A process of the quick preset; every second step takes 1 µs longer."""
    times = [step_ns + (1000 if index % 2 else 0) for index in range(100)]
    attempt = make_attempt(
        times,
        blocks=1,
        id=f"0000000{process}",
        process=process,
        protocol=preset("quick"),
        machine={},
        software={},
        starts={"import": 1.0, "first_step": 8.5},
        ended="",
        **{"workload": "lenet5", "threads": 0, **settings},
    )
    network = {"unit": "images", "units_per_step": attempt.case.batch_size}
    return replace(attempt, network=network)


def measured(milliseconds: int, **settings: object) -> Record:
    times = [milliseconds * 1_000_000 * share // 100 for share in (100, 101, 102)]
    attempts = [make_stored(process, ns, **settings) for process, ns in enumerate(times)]
    return Record(attempts=tuple(attempts))


def failed(**settings: object) -> Record:
    failure = Failure(cause=Cause.OUT_OF_MEMORY, reason="64 GiB wanted.", output="Traceback …")
    attempt = make_stored(0, 1, **settings)
    return Record(attempts=(replace(attempt, measurement=None, failure=failure),))


@pytest.mark.parametrize(
    ("records", "done"),
    [
        ([measured(1)], "Measured"),
        ([failed()], "Tried"),
        ([measured(1), failed()], "Measured or tried"),
    ],
)
def test_what_failed_before_was_not_measured(
    records: list[Record], done: str, capsys: pytest.CaptureFixture[str]
) -> None:
    results.say_stored(records, Path("here"), fresh=False)
    results.say_stored(records, Path("here"), fresh=True)
    found = capsys.readouterr().out.split("\n\n")
    assert found[0].strip() == f"{done} before (--again measures anew), stored in here."
    assert found[1].strip() == "Stored in here."


def test_the_first_line_says_what_matters(capsys: pytest.CaptureFixture[str]) -> None:
    results.show([measured(4, batch_size=8), measured(2, batch_size=1)])
    first = capsys.readouterr().out.splitlines()[0]
    assert (
        first
        == "2 of 2 cases measured: a step takes from 2.02 ms (lenet5 batch size 1) to 4.041 ms (lenet5 batch size 8)."
    )


def test_a_row_has_time_certainty_speed_grade_and_id(capsys: pytest.CaptureFixture[str]) -> None:
    results.show([measured(4, batch_size=8), measured(2, batch_size=1)])
    row = capsys.readouterr().out.splitlines()[4]
    assert (
        " ".join(row.split())
        == "lenet5 8 4.041 ms 3 within 2 % 1,980 images/s C 00000000 few processes"
    )


def test_a_single_case_shows_its_numbers_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    results.show([measured(4, batch_size=8)])
    text = capsys.readouterr().out
    assert text.startswith(
        "lenet5 training pytorch eager cpu fp32 batch 8: 4.041 ms a step (3 within 2 %), 1,980 images/s"
    )
    assert (
        "typical speed         1,980 images/s, per device and aggregate: it is 1 device\n" in text
    )
    assert (
        "mean speed            1,980 images/s aggregate, jitter" in text
        and "3 processes, 300 steps" in text
    )


def test_failures_stand_below_with_cause_and_reason(capsys: pytest.CaptureFixture[str]) -> None:
    results.show([measured(4, batch_size=8), failed(batch_size=4096)])
    assert (
        capsys.readouterr().out.splitlines()[-1]
        == "failed: lenet5 batch size 4096: out_of_memory. 64 GiB wanted."
    )


def test_nothing_but_failures_is_said_so(capsys: pytest.CaptureFixture[str]) -> None:
    results.show([failed()])
    assert capsys.readouterr().out.startswith("Nothing was measured: the case failed.")


def test_the_document_holds_result_or_failure() -> None:
    good, bad = results.as_document([measured(4), failed(batch_size=64)])["records"]
    assert good["result"]["grade"] == "C" and "failure" not in good
    assert bad["failure"] == {
        "cause": "out_of_memory",
        "reason": "64 GiB wanted.",
        "output": "Traceback …",
    }
    assert bad["status"] == "out_of_memory" and "result" not in bad


def with_a_crash(record: Record) -> Record:
    failure = Failure(cause=Cause.CRASHED, reason="The worker was killed by SIGKILL.")
    crashed = replace(record.last, id="00000003", process=3, measurement=None, failure=failure)
    return Record(attempts=(*record.attempts, crashed))


def test_a_process_that_failed_beside_good_ones_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    results.show([with_a_crash(measured(4))])
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "1 of 4 processes of lenet5 failed: crashed, The worker was killed by SIGKILL."


def test_the_document_of_a_measured_case_has_its_failures() -> None:
    entry = results.as_document([with_a_crash(measured(4))])["records"][0]
    assert entry["status"] == "ok"
    assert entry["failures"] == [
        {"cause": "crashed", "reason": "The worker was killed by SIGKILL."}
    ]


def test_equal_times_are_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    results.show([measured(4, batch_size=8), measured(4, batch_size=1)])
    first = capsys.readouterr().out.splitlines()[0]
    assert first == "2 of 2 cases measured: a step takes 4.041 ms in each."


def test_one_process_is_singular(capsys: pytest.CaptureFixture[str]) -> None:
    results.show([Record(attempts=measured(4).attempts[:1])])
    assert "\nmeasured              1 process, 100 steps;" in capsys.readouterr().out


def test_on_a_narrow_terminal_each_case_is_a_block(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    results.show([measured(4, batch_size=8), measured(2, batch_size=1)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[2:5] == [
        "lenet5 batch size 8",
        "  typical step  4.041 ms",
        "  how sure      3 within 2 %",
    ]
    assert lines[7:11] == [
        "  id            00000000",
        "  doubts        few processes",
        "",
        "lenet5 batch size 1",
    ]


def with_network(record: Record, **told: object) -> Record:
    return Record(attempts=tuple(replace(attempt, network=told) for attempt in record.attempts))


def test_a_translation_is_told_in_sentences_and_in_tokens_of_both_languages(
    capsys: pytest.CaptureFixture[str],
) -> None:
    counts = {"sentences": 8, "source_tokens": 80, "target_tokens": 160}
    results.show([with_network(measured(4), unit="sentences", units_per_step=counts)])
    assert (
        "1,980 sentences/s, 19,800 source tokens/s, 39,599 target tokens/s"
        in capsys.readouterr().out
    )


def test_the_document_labels_every_rate_with_unit_and_devices() -> None:
    found = results.as_document([measured(4, batch_size=8)])["records"][0]["result"]["throughput"]
    assert (found["unit"], found["devices"]) == ("images", 1)
    assert found["per_device"] == found["aggregate"]
    assert found["aggregate"]["images"]["value"] == pytest.approx(8 / 0.00404, rel=0.01)


def test_compiled_modes_tell_their_first_step(capsys: pytest.CaptureFixture[str]) -> None:
    results.show(
        [measured(4, batch_size=8, mode="compiled"), measured(2, batch_size=1, mode="compiled")]
    )
    lines = capsys.readouterr().out.splitlines()
    assert "first step" in lines[2] and " 8.5 s " in lines[4]


def test_a_single_case_tells_how_it_started_and_on_which_cache(
    capsys: pytest.CaptureFixture[str],
) -> None:
    results.show([measured(4, compile_cache="cold")])
    assert (
        "start-up              first step 8.5 s, import 1 s, compile cache cold\n"
        in capsys.readouterr().out
    )


def test_a_low_precision_shows_its_price_in_json_and_in_its_row(
    capsys: pytest.CaptureFixture[str],
) -> None:
    low, full = measured(4, precision="bf16"), measured(8)
    errors = {"largest_logit_error": 0.25, "largest_relative_error": 0.5, "broken_positions": 0}
    found = {**errors, "top1_agreement": 0.75, "task": None}
    low = Record(attempts=tuple(replace(one, findings={"accuracy": found}) for one in low.attempts))
    entries = results.as_document([low, full])["records"]
    assert (entries[0]["accuracy"], entries[1]["accuracy"]) == (found, None)
    results.show([low, full])
    assert "75.00 %" in capsys.readouterr().out


def test_ranks_tell_both_rates_and_their_exchange_alone(capsys: pytest.CaptureFixture[str]) -> None:
    told = {
        "backend": "gloo",
        "ranks": 2,
        "bytes": 4_000_000,
        "seconds": [0.002, 0.004],
        "bus_bytes_per_second": 1.3e9,
    }
    told["latency_seconds"] = {"value": 1e-4, "low": 9e-5, "high": 1.2e-4}
    case = {"workload": "mnist-mlp", "exchange": "allreduce", "devices": 2}
    attempt = make_stored(0, 10**6, findings={"exchange": told}, **case)
    results.show([Record(attempts=(attempt,))])
    printed = capsys.readouterr().out
    assert (
        "per device" in printed and "aggregate over 2 devices" in printed and "of rank 0" in printed
    )
    assert (
        "4 MB by gloo in 2 ms … 4 ms, 1.3 GB/s over each link; latency 100 µs (90 µs … 120 µs)"
        in printed
    )
