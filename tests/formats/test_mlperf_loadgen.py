"""LoadGen's logs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from steptime.formats import Reading

Read = Callable[..., Reading]

RULE = "================================================\n"
SUMMARY = (
    RULE
    + "MLPerf Results Summary\n"
    + RULE
    + """SUT name : PySUT
Scenario : Server
Mode     : PerformanceOnly
Completed samples per second    : 81.68
Completed tokens per second: 24593.77
Result is : VALID
  Min duration satisfied : Yes

"""
    + RULE
    + "Additional Stats\n"
    + RULE
    + """Scheduled samples per second : 83.90
50.00 percentile latency (ns)   : 38401775522
90.00 percentile latency (ns)   : 77996405844
99.00 percentile latency (ns)   : 136069232834
"""
)
NAME = (
    "inference-v5.1/closed/AMD/results/8xMI300X/llama2-70b-99/Server/perfor"
    "mance/run_1/mlperf_log_summary.txt"
)


def test_language_models_are_counted_in_tokens(read: Read) -> None:
    run = read(NAME, SUMMARY).runs[0]
    assert run.metrics == pytest.approx(
        {
            "throughput": 24593.77,
            "latency_p50": 38.401775522,
            "latency_p90": 77.996405844,
            "latency_p99": 136.069232834,
        }
    )
    told = ("unit", "scenario", "model", "submitter", "suite")
    assert [run.dimensions[name] for name in told] == [
        "tokens",
        "Server",
        "llama2-70b-99",
        "AMD",
        "MLPerf Inference v5.1",
    ]


def test_accuracy_comes_from_the_run_beside_it(read: Read) -> None:
    for text, share in (
        ("accuracy=76.442%, good=38221, total=50000", 0.76442),
        ("{'rouge1': 44.4406}", 0.444406),
    ):
        run = read(NAME, SUMMARY, {"../../accuracy/accuracy.txt": text}).runs[0]
        assert run.metrics["accuracy"] == pytest.approx(share)


def test_invalid_result_is_a_failure(read: Read) -> None:
    assert (
        read(NAME, SUMMARY.replace(": VALID", ": INVALID")).runs[0].failure
        == "LoadGen calls the result INVALID"
    )


def test_offline_runs_have_no_latencies(read: Read) -> None:
    run = read(
        NAME, SUMMARY.replace("Server", "Offline").replace("Completed samples", "Samples")
    ).runs[0]
    assert "latency_p50" not in run.metrics


def test_streams_are_a_score(read: Read) -> None:
    text = (
        RULE
        + "MLPerf Results Summary\n"
        + RULE
        + "Scenario : Multi Stream\nSamples per query : 2\nResult is : VALID\n"
    )
    run = read(NAME, text).runs[0]
    assert run.metrics == {"score": 2.0} and run.dimensions["scenario"] == "MultiStream"


def test_detail_log_counts_only_without_the_summary(read: Read) -> None:
    event = ':::MLLOG {"key": "%s", "value": %s, "time_ms": 1.0, "metadata": {}}\n'
    values = {
        "loadgen_version": '"4.1"',
        "effective_scenario": '"Offline"',
        "result_validity": '"VALID"',
        "result_samples_per_second": "757446",
    }
    text = "".join(event % pair for pair in values.items())
    name = NAME.replace("summary", "detail")
    assert read(name, text).runs[0].metrics == {"throughput": 757446.0}
    assert not read(name, text, {"mlperf_log_summary.txt": SUMMARY}).runs


def test_accuracy_run_has_no_speed(read: Read) -> None:
    found = read(
        "accuracy/mlperf_log_summary.txt",
        "\nNo warnings encountered during test.\n\nNo errors encountered during test.\n",
    )
    assert not found.runs and "not speed" in found.skipped[0].reason
